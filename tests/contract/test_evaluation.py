"""Evaluations through the whole flow: another account's job scores the models, once, and only its numbers decide."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.contract.boundaries import At, nothing, only_at, raising
from tests.contract.retraining import DATA
from tests.contract.schemas import RECORD
from tests.contract.test_champions import REQUEST, champion, order, told, verdict
from tests.contract.world import (
    CHAMPIONS,
    LEASE,
    REGION,
    REQUEST_RULES,
    Boundary,
    World,
    request_rules_with,
)
from tests.core.admission_cases import PRICES
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import (
    JobNotFound,
    SubmissionDeferred,
    SubmissionRefused,
    SubmissionUnknown,
)
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import RUN_LABEL, STEP_LABEL
from trainmaster.orchestrator.core.policy.admission import Admission, Caps
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.end import FollowUp
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState
from trainmaster.orchestrator.flows.services import FlowResult

HOLDOUT = f"gs://{DATA}/holdout.csv"
EVALUATE = {"image": REQUEST["image"], "data": HOLDOUT}
MODEL = "cassava-resnet50"


def ended(
    world: World, name: str, claims: float = 1.0, boundary: Boundary | None = None, **champion: Any
) -> str:
    """A run whose job has ended, and claims this accuracy; its end is reported."""
    asked = {**REQUEST, "champion": {**REQUEST["champion"], **champion}}
    incoming = world.drop_and_launch(json.dumps(asked).encode(), f"requests/{name}.json")
    job = world.train(world.record(incoming.run_id), claims)
    world.complete(world.hint(job), boundary)
    return incoming.run_id


def evaluated(world: World, name: str, claims: float = 1.0, **scores: float) -> str:
    run_id = ended(world, name, claims, evaluate=EVALUATE)
    score(world, run_id, **scores)
    return run_id


def score(world: World, run_id: str, **scores: float) -> FlowResult:
    job = evaluation_job(world, run_id)
    world.score(job, **scores)
    return end(world, job, JobState.SUCCEEDED)


def end(world: World, job: Job, state: JobState, error: Failure | None = None) -> FlowResult:
    world.jobs.become(job.name, JobState.RUNNING)
    world.clock.advance(timedelta(seconds=600))
    return world.complete(world.hint(world.jobs.become(job.name, state, error=error)))


def evaluation_jobs(world: World) -> list[Job]:
    return [job for job in world.jobs.all() if STEP_LABEL in job.labels]


def evaluation_job(world: World, run_id: str) -> Job:
    return world.jobs.read(present(evaluation(world, run_id).job).name)


def evaluation(world: World, run_id: str) -> FollowUp:
    record = world.record(run_id)
    RECORD.validate(encoded(record))
    return present(present(record.completion).evaluation)


def test_only_the_evaluation_s_numbers_count_for_both_models(world: World) -> None:
    """The second run claims 1.0, and is worse; the third is better than the champion's new score on the same data."""
    first = evaluated(world, "a", 1.0, challenger=0.7)
    liar = evaluated(world, "b", 1.0, challenger=0.5, champion=0.65)
    assert champion(world)["current"]["value"] == 0.7
    reason = "accuracy 0.5 is not better by 0.01 than the champion's 0.65"
    assert verdict(world, liar) == {"promoted": False, "reason": reason, "compared_with": first}
    better = evaluated(world, "c", 0.1, challenger=0.68, champion=0.65)
    assert verdict(world, better)["promoted"] is True
    current = champion(world)["current"]
    assert (current["run_id"], current["value"], current["contest"]["evaluation"]) == (better, 0.68, HOLDOUT)
    assert told(world, "promoted") == [f"champions/{MODEL}/1", f"champions/{MODEL}/2"]
    assert world.active() == []


def test_what_is_scored_is_the_copy_that_would_be_promoted(world: World) -> None:
    first = evaluated(world, "a", challenger=0.7)
    second = ended(world, "b", evaluate=EVALUATE)
    found, copy = evaluation(world, second), f"gs://{CHAMPIONS}/{MODEL}"
    assert found.inputs == {
        "challenger": f"{copy}/{second}/",
        "champion": f"{copy}/{first}/",
        "champion_run": first,
        "data": HOLDOUT,
    }
    assert "champion" not in evaluation(world, first).inputs
    job = evaluation_job(world, second)
    assert job.output_uri == found.output_uri == f"gs://{CHAMPIONS}/_evaluations/{MODEL}/{second}"
    assert (job.labels[STEP_LABEL], job.display_name) == ("evaluation", f"{second}-evaluation")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "the evaluation left no metrics.json in the directory of --output"),
        (b"{", "metrics.json of the evaluation: it is not JSON"),
        (b'{"accuracy": 1.0}', "has no numbers of the challenger"),
        (b'{"challenger": {"loss": 1}}', "gave no finite 'accuracy' of the challenger"),
        (b'{"challenger": {"accuracy": NaN}}', "gave no finite 'accuracy' of the challenger"),
        (b'{"challenger": {"accuracy": "1.0"}}', "gave no finite 'accuracy' of the challenger"),
    ],
)
def test_without_a_finite_number_the_champion_stays(world: World, content: bytes | None, reason: str) -> None:
    run_id = ended(world, "a", evaluate=EVALUATE)
    job = evaluation_job(world, run_id)
    if content is not None:
        name = f"{job.output_uri.removeprefix(f'gs://{CHAMPIONS}/')}/metrics.json"
        world.objects.write(CHAMPIONS, name, content, if_generation=None)
    end(world, job, JobState.SUCCEEDED)
    assert reason in verdict(world, run_id)["reason"]
    assert champion(world).get("current") is None
    assert world.active() == []


def test_an_evaluation_without_a_number_of_the_champion_promotes_nothing(world: World) -> None:
    evaluated(world, "a", challenger=0.7)
    second = evaluated(world, "b", challenger=0.9)
    assert "no numbers of the champion" in verdict(world, second)["reason"]


def failed(world: World, run_id: str) -> None:
    end(world, evaluation_job(world, run_id), JobState.FAILED, Failure(code=3, message="exit status 1"))


def too_slow(world: World, run_id: str) -> None:
    world.reconcile_after(timedelta(hours=4))  # more than two hours to start, and one to run
    world.reconcile()


def deleted(world: World, run_id: str) -> None:
    world.jobs.remove(evaluation_job(world, run_id).name)
    world.reconcile()
    world.reconcile_after(timedelta(minutes=11))


def cancelled(world: World, run_id: str) -> None:
    order(world, {"cancel": {"run": run_id}})
    world.reconcile()


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (failed, "exit status 1"),
        (too_slow, "its job did not end in time"),
        (deleted, "no longer exists"),
        (cancelled, "an order cancelled it"),
    ],
)
def test_the_end_of_an_evaluation_in_failure_keeps_the_champion(
    world: World, happens: Callable[[World, str], None], reason: str
) -> None:
    first = evaluated(world, "a", challenger=0.7)
    second = ended(world, "b", evaluate=EVALUATE)
    happens(world, second)
    assert verdict(world, second)["reason"].startswith("the evaluation failed: ")
    assert reason in verdict(world, second)["reason"]
    assert champion(world)["current"]["run_id"] == first
    assert world.jobs.going() == []
    assert world.active() == []
    assert f"{second}/succeeded" in [notice.id for notice in world.notices.published]


@pytest.mark.parametrize("after", [nothing, raising(SubmissionUnknown("the answer never came"))])
def test_a_submission_that_is_overtaken_leaves_one_job(world: World, after: Callable[[], object]) -> None:
    """The attempt pauses before it submits until another has taken over, then wakes."""

    def meanwhile() -> None:
        world.clock.advance(LEASE)
        world.reconcile()

    run_id = ended(
        world, "a", boundary=At("submit", before=only_at(1, meanwhile), after=after), evaluate=EVALUATE
    )
    world.reconcile_after(LEASE)
    assert len(evaluation_jobs(world)) == 2
    world.reconcile_after(LEASE)
    score(world, run_id, challenger=0.7)
    assert world.jobs.going() == []
    assert champion(world)["current"]["run_id"] == run_id


def test_a_job_whose_answer_was_lost_is_adopted_once_the_lease_is_over(world: World) -> None:
    run_id = ended(
        world, "a", boundary=At("submit", after=raising(SubmissionUnknown("lost"))), evaluate=EVALUATE
    )
    world.reconcile_after(timedelta(seconds=61))
    assert evaluation(world, run_id).job is None
    world.reconcile_after(LEASE + timedelta(hours=1))
    assert [job.name for job in evaluation_jobs(world)] == [evaluation_job(world, run_id).name]


def test_a_submission_without_room_is_repeated_for_a_day_and_one_that_is_refused_is_not(world: World) -> None:
    def full() -> object:
        raise SubmissionDeferred(429, "quota")

    run_id = ended(world, "a", boundary=At("submit", before=full), evaluate=EVALUATE)
    for hours in (1, 22):
        world.clock.advance(timedelta(hours=hours))
        world.reconcile(At("submit", before=full))
        assert evaluation(world, run_id).failure is None
    world.clock.advance(timedelta(hours=2))
    world.reconcile(At("submit", before=full))
    assert "no room" in verdict(world, run_id)["reason"]
    refused = ended(
        world,
        "b",
        boundary=At("submit", before=raising(SubmissionRefused(400, "no image"))),
        evaluate=EVALUATE,
    )
    assert "no image" in verdict(world, refused)["reason"]


def test_a_job_for_which_there_was_no_room_for_hours_has_its_whole_time(world: World) -> None:
    """The limits on its absence and on its end count from its submission, not from the first attempt."""
    full = raising(SubmissionDeferred(429, "quota"))
    run_id = ended(world, "a", boundary=At("submit", before=full), evaluate=EVALUATE)
    world.reconcile_after(timedelta(hours=10))
    unseen = raising(JobNotFound("not visible yet"))
    world.reconcile(At("list jobs", before=unseen))
    world.reconcile_after(timedelta(minutes=1))
    assert (evaluation(world, run_id).cancelled, evaluation(world, run_id).failure) == (None, None)
    score(world, run_id, challenger=0.7)
    assert champion(world)["current"]["run_id"] == run_id


def test_a_job_with_the_labels_of_an_evaluation_and_another_place_is_not_taken_for_it(world: World) -> None:
    """Any account that may create jobs can write any label."""
    lost = At("submit", before=raising(SubmissionUnknown("lost")))
    run_id = ended(world, "a", boundary=lost, evaluate=EVALUATE)
    labels = {RUN_LABEL: run_id, STEP_LABEL: "evaluation"}
    body = {"displayName": f"{run_id}-evaluation", "labels": labels}
    body["jobSpec"] = {"baseOutputDirectory": {"outputUriPrefix": "gs://elsewhere"}}
    forged = world.jobs.submit(
        Submission(run_id=run_id, kind=JobKind.CUSTOM, parent=f"projects/p/locations/{REGION}", body=body)
    )
    world.reconcile_after(LEASE)
    assert evaluation_job(world, run_id).name != forged.name
    score(world, run_id, challenger=0.7)
    assert champion(world)["current"]["run_id"] == run_id


def test_an_image_that_the_policy_no_longer_allows_is_not_run(world: World) -> None:
    asked = {**REQUEST, "champion": {**REQUEST["champion"], "evaluate": EVALUATE}}
    incoming = world.drop_and_launch(json.dumps(asked).encode())
    job = world.train(world.record(incoming.run_id))
    world.request_rules = request_rules_with(images=())
    world.complete(world.hint(job))
    assert "it is no longer allowed: $.champion.evaluate.image" in verdict(world, incoming.run_id)["reason"]
    assert evaluation_jobs(world) == []


def test_entries_about_an_evaluation_never_end_or_change_its_run(world: World) -> None:
    run_id = ended(world, "a", evaluate=EVALUATE)
    job = world.jobs.become(evaluation_job(world, run_id).name, JobState.RUNNING)
    before = world.record(run_id)
    for tells_end in (False, True):
        world.complete(world.hint(job, tells_end=tells_end))
    assert world.record(run_id).job == before.job
    assert world.record(run_id).submission.second_jobs == ()
    score(world, run_id, challenger=0.7)
    done = world.record(run_id)
    for _ in range(2):
        world.complete(world.hint(world.jobs.read(job.name)))
    assert world.record(run_id) == done
    assert len(evaluation_jobs(world)) == 1


def test_the_cost_of_the_evaluation_is_the_run_s_and_counted_when_it_is_known() -> None:
    caps = Admission(caps=Caps(cost_per_day=Decimal(1000), currency="USD"))
    world = World(request_rules_with(admission=caps), prices=lambda: PRICES)
    run_id = ended(world, "a", evaluate=EVALUATE)
    alone = present(present(present(world.record(run_id).completion).cost).total)

    def settled() -> list[str]:
        return [each.name for each in world.objects.listing("ledger", "started/") if "/ended/" in each.name]

    assert settled() == []
    score(world, run_id, challenger=0.7)
    cost = present(present(world.record(run_id).completion).cost)
    assert present(cost.evaluation) > 0
    assert cost.total == alone + present(cost.evaluation)
    assert len(settled()) == 1


def test_a_tick_lists_the_jobs_and_says_nothing_while_an_evaluation_runs(world: World) -> None:
    ended(world, "a", evaluate=EVALUATE)
    world.reconcile()
    boundary = Boundary()
    assert world.reconcile(boundary) == []
    assert [call for call in boundary.calls if "job" in call] == ["list jobs"]


def test_a_challenger_that_wins_waits_for_an_order_and_its_run_s_end_is_announced(world: World) -> None:
    run_id = ended(world, "a", 0.7, approve=True)
    found = champion(world)
    assert found.get("current") is None
    assert found["pending"]["reign"]["run_id"] == run_id
    assert verdict(world, run_id)["approve_by"] == found["pending"]["expires_at"]
    assert re.search(
        r"; waits for approval until \d{4}-\d\d-\d\d \d\d:\d\d UTC$", verdict(world, run_id)["reason"]
    )
    assert told(world, "approval_needed") == [f"champions/{MODEL}/approval/{run_id}"]
    assert f"{run_id}/succeeded" in [notice.id for notice in world.notices.published]
    assert world.reconcile_after(timedelta(minutes=1)) == []
    incoming, _ = order(world, {"approve": {"model_name": MODEL, "run": run_id}})
    world.reconcile()
    found = champion(world)
    assert found["current"]["run_id"] == run_id
    assert found["current"]["order_id"] == incoming.run_id
    assert verdict(world, run_id) == {
        "promoted": True,
        "reason": "the first, with accuracy 0.7; an order approved it",
    }
    assert set(told(world, "promoted")) == {f"champions/{MODEL}/1"}
    assert world.active() == []


def test_who_approved_is_on_record(world: World) -> None:
    run_id = ended(world, "a", 0.7, approve=True)
    content = json.dumps({"approve": {"model_name": MODEL}}).encode()
    world.launch(world.drop(content, "requests/order.json", by="anna"))
    assert champion(world)["current"]["approved_by"] == {"name": "anna", "by": "claim"}
    assert "anna approved it" in champion(world)["considered"][-1]["reason"]
    assert champion(world)["current"]["run_id"] == run_id


def test_a_rejection_and_an_expiry_keep_the_champion(world: World) -> None:
    first = ended(world, "a", 0.7)
    second = ended(world, "b", 0.8, approve=True)
    order(world, {"approve": {"model_name": MODEL, "reject": True}})
    third = ended(world, "c", 0.9, approve=True)
    world.reconcile_after(timedelta(days=7))
    assert champion(world)["current"]["run_id"] == first
    assert "pending" not in champion(world)
    assert verdict(world, second)["reason"] == "accuracy 0.8 beats 0.7, but an order rejected it"
    assert verdict(world, third)["reason"] == "accuracy 0.9 beats 0.7, but it was not approved in time"
    assert world.active() == []
    assert len(told(world, "approval_needed")) == 2


def test_a_newer_challenger_that_wins_replaces_the_one_that_waits(world: World) -> None:
    first = ended(world, "a", 0.7, approve=True)
    second = ended(world, "b", 0.6, approve=True)
    world.reconcile()
    assert champion(world)["pending"]["reign"]["run_id"] == second
    assert f"but {second} won before it was approved" in verdict(world, first)["reason"]
    assert world.active() == [second]


@pytest.mark.parametrize(
    ("approve", "problem"),
    [
        ({"model_name": "other"}, "no champion and no challenger has this model name"),
        ({"model_name": MODEL, "run": "another"}, "another does not wait for approval, but b-"),
        ({"model_name": MODEL}, "the champion changed meanwhile, and accuracy 0.8 is not better"),
    ],
)
def test_an_approval_that_changes_nothing_is_refused(world: World, approve: object, problem: str) -> None:
    ended(world, "a", 0.7)
    ended(world, "b", 0.8, approve=True)
    ended(world, "c", 0.9)
    incoming, _ = order(world, {"approve": approve})
    assert problem in world.document(f"rejected/{incoming.run_id}.json")["faults"][0]["problem"]


def test_an_evaluation_that_waits_for_approval_needs_both(world: World) -> None:
    world.request_rules = REQUEST_RULES
    run_id = ended(world, "a", evaluate=EVALUATE, approve=True)
    assert "pending" not in world.document(f"runs/{run_id}.json")["completion"]
    score(world, run_id, challenger=0.7)
    assert champion(world)["pending"]["reign"]["value"] == 0.7
    order(world, {"approve": {"model_name": MODEL}})
    assert champion(world)["current"]["run_id"] == run_id
