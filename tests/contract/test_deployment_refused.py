"""While Vertex AI refuses the deployment, its runs wait in one line and one asks; a run without a grant waits alone."""

from collections.abc import Sequence
from datetime import timedelta

from tests.contract.rooms import (
    GPU,
    REPAIR,
    TWO_REGIONS,
    Room,
    drop,
    ends,
    full,
    launched,
    places,
    states,
    unanswered,
)
from tests.contract.schemas import STATUS
from tests.contract.simulation.scenarios import TUNED
from tests.contract.world import ELSEWHERE, LEASE, REGION, World, request_rules_with
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.waiting import WAIT_IN_ALL
from trainmaster.orchestrator.core.errors import DeploymentRefused, SubmissionDeferred, SubmissionRefused
from trainmaster.orchestrator.core.job_names import JobKind, location_region
from trainmaster.orchestrator.core.policy.admission import Admission, Limit
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.log_events import LogEvent

MINUTE = timedelta(seconds=60)
WITH_FALLBACK = {"fallbacks": [{"region": ELSEWHERE}]}


class Denied(Room):
    """A job service that refuses the deployment in `denied`, for `lacks`, and the others with `then`."""

    def __init__(self, world: World, *regions: str, lacks: str | None = None) -> None:
        super().__init__(world)
        self.denied, self.lacks = set(regions or (REGION,)), lacks
        self.then: SubmissionDeferred | SubmissionRefused | None = None

    def submit(self, submission: Submission) -> Job:
        is_denied = location_region(submission.parent) in self.denied
        error = self.then
        if is_denied and self.lacks is not None:
            error = DeploymentRefused(403, "Permission denied.", REPAIR, lacks=self.lacks)
        if error is None or (is_denied and self.lacks is None):
            return super().submit(submission)
        self.asked.append(submission.run_id)
        raise error


def tick(world: World) -> None:
    world.reconcile_after(MINUTE)


def test_a_refused_deployment_fails_no_run_and_its_status_has_the_repair(world: World) -> None:
    Denied(world)
    incoming = drop(world)
    result = world.launch(incoming)
    assert states(world, incoming.run_id) == ["waiting"]
    waiting = present(world.record(incoming.run_id).admission.waiting)
    assert (waiting.lacks, waiting.limit) == (f"deployment_{REGION}_customJobs", None)
    assert waiting.reason == f"Permission denied; {REPAIR}"
    status = world.document(f"status/{incoming.source.object_name}.json")
    STATUS.validate(status)
    assert status["reason"] == waiting.reason
    assert (result.severity, result.event) == ("NOTICE", LogEvent.DEPLOYMENT_REFUSED)


def test_one_run_asks_at_each_tick_and_the_others_do_not_whatever_their_machines_are(world: World) -> None:
    room = Denied(world)
    first, *others = [launched(world), launched(world), launched(world, **GPU)]
    assert room.asked == [first]
    for number in range(1, 4):
        tick(world)
        assert room.asked == [first] * (number + 1)
    assert states(world, first, *others) == ["waiting"] * 3
    for run_id in others:
        waiting = present(world.record(run_id).admission.waiting)
        assert REPAIR in waiting.reason


def test_after_the_repair_all_go_at_the_next_tick_in_their_order(world: World) -> None:
    room = Denied(world)
    late = launched(world, priority=10)
    first, urgent = launched(world), launched(world, priority=90, **GPU)
    tick(world)
    room.denied, room.asked = set(), []
    tick(world)
    assert room.asked == [urgent, first, late]
    assert states(world, urgent, first, late) == ["submitted"] * 3
    assert places(world) == []
    ends(world, late)
    assert states(world, late) == ["succeeded"]


def test_a_new_run_after_the_repair_overtakes_none_that_waits(world: World) -> None:
    room = Denied(world)
    first, second = launched(world), launched(world)
    room.denied, room.asked = set(), []
    third = launched(world)
    assert states(world, third) == ["waiting"]
    tick(world)
    assert room.asked == [first, second, third]


def test_other_kinds_of_jobs_and_other_regions_are_still_submitted() -> None:
    world = World(TWO_REGIONS)
    room = Denied(world)
    refused, elsewhere = launched(world), launched(world, region=ELSEWHERE)
    assert states(world, refused, elsewhere) == ["waiting", "submitted"]
    tuning = launched(world, tuning=TUNED["tuning"])
    assert room.asked == [refused, elsewhere, tuning]


def test_a_run_whose_own_need_is_missing_holds_up_none_that_lacks_nothing(world: World) -> None:
    room = Denied(world, lacks="deployment_us-central1_images")
    first, second = launched(world), launched(world)
    assert room.asked == [first, second]
    room.asked = []
    tick(world)
    assert room.asked == [first]
    tick(world)
    assert room.asked == [first, first]
    tick(world)
    assert room.asked == [first, first]  # the pause doubles: it may be this run's mistake


def test_a_fallback_that_is_refused_leaves_the_run_in_the_line_of_its_machines() -> None:
    world = World(TWO_REGIONS)
    room = Denied(world, ELSEWHERE)
    room.then = full()
    run_id = launched(world, **WITH_FALLBACK)
    waiting = present(world.record(run_id).admission.waiting)
    assert waiting.lacks is None
    assert room.asked == [run_id, run_id]
    room.then = None
    tick(world)
    assert states(world, run_id) == ["submitted"]


def test_after_seven_days_the_runs_fail_one_by_one_with_the_repair(world: World) -> None:
    Denied(world)
    runs = [launched(world) for _ in range(3)]
    world.clock.advance(WAIT_IN_ALL + timedelta(hours=1))
    for _ in runs:
        tick(world)
    assert states(world, *runs) == ["failed"] * 3
    failure = present(world.record(runs[-1]).failure)
    assert failure.message.startswith("Vertex AI refused this deployment in the 7 days since 2026-03-01")
    assert REPAIR in failure.message


def test_a_deployment_that_may_not_even_look_for_its_jobs_waits_the_same_way(world: World) -> None:
    room, looks = Denied(world), world.jobs.of_run
    lacks = f"deployment_{REGION}_customJobs"

    def denied(run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        if room.denied:
            raise DeploymentRefused(403, "Permission denied.", REPAIR, lacks=lacks)
        return looks(run_id, kind, regions)

    world.jobs.of_run = denied  # type: ignore[method-assign]  # the test's service answers instead
    first, second = launched(world), launched(world)
    for _ in range(3):
        world.clock.advance(MINUTE)
        events = [each.event for each in world.reconcile()]
        assert events.count(LogEvent.DEPLOYMENT_REFUSED) == 1
    record = world.record(first)
    assert (record.state, record.submission.lease) == (RunState.WAITING, None)
    room.denied = set()
    tick(world)
    assert states(world, first, second) == ["submitted", "submitted"]


def test_a_lease_is_kept_while_the_deployment_may_not_search_for_the_job(world: World) -> None:

    def denied(run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        raise DeploymentRefused(403, "Permission denied.", REPAIR, lacks="deployment_x")

    looks, world.jobs.of_run = world.jobs.of_run, denied  # type: ignore[method-assign]  # see above
    incoming = unanswered(world, Room(world))
    assert world.record(incoming.run_id).submission.lease is not None
    world.jobs.of_run = looks  # type: ignore[method-assign]  # see above
    world.reconcile_after(LEASE + MINUTE)
    assert states(world, incoming.run_id) == ["submitted"]


ACCOUNT = "vision@my-project.iam.gserviceaccount.com"
GRANT = f"gcloud iam service-accounts add-iam-policy-binding {ACCOUNT} "


def without_grant(*limits: Limit) -> World:
    world = World(request_rules_with(service_accounts=("*",), admission=Admission(limits=limits)))
    world.jobs.denied_accounts.add(ACCOUNT)
    return world


def denied(world: World, **changes: object) -> str:
    return launched(world, service_account=ACCOUNT, **changes)


def test_a_missing_grant_makes_the_run_wait_and_says_how_to_give_it() -> None:
    world = without_grant()
    run_id = denied(world)
    assert states(world, run_id) == ["waiting"]
    record = world.record(run_id)
    waiting = present(record.admission.waiting)
    assert waiting.lacks == f"act_as_{ACCOUNT}"
    assert f"permission to act as service_account: {ACCOUNT}" in waiting.reason
    assert GRANT in waiting.reason
    assert "--role=roles/iam.serviceAccountUser" in waiting.reason
    status = world.document(f"status/{record.source.object_name}.json")
    STATUS.validate(status)
    assert (status["state"], status["reason"]) == ("waiting", waiting.reason)
