"""Versions and aliases in the Model Registry: the port in memory and on the stack, and the step through the whole flow."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.contract.boundaries import At, only_at, raising
from tests.contract.proxy import Proxy
from tests.contract.schemas import CHAMPION, RECORD
from tests.contract.teams import SPEECH, VISION, drop, world_of_teams
from tests.contract.world import (
    CHAMPIONS,
    LEDGER,
    MODELS,
    PROJECT,
    REGION,
    START,
    Boundary,
    World,
    export_manifest,
    request_rules_with,
)
from tests.core.admission_cases import PRICES
from tests.memory import ManualClock, MemoryModels
from tests.narrowing import present
from tests.stack.waiting import wait_until
from trainmaster.orchestrator.adapters.model_registry import VertexModels
from trainmaster.orchestrator.core.champions.registration import ALIAS, ModelUpload
from trainmaster.orchestrator.core.completion.steps import OUTAGE_ATTEMPTS_MAX
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.names import RUN_LABEL, STEP_LABEL, registry_model_id
from trainmaster.orchestrator.core.policy.admission import Admission, Caps
from trainmaster.orchestrator.core.policy.policy import EvaluationPolicy, policy_from
from trainmaster.orchestrator.core.policy.registry import PREBUILT, Registry, RegistryMode
from trainmaster.orchestrator.core.runs.end import Registration, RegistrationState
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.flows.completion import registry as step
from trainmaster.orchestrator.flows.completion.complete import STEPS
from trainmaster.orchestrator.flows.lifecycle.finish import steps_done
from trainmaster.orchestrator.ports.services import ModelRegistry

NAME = "cassava"
REQUEST: dict[str, Any] = {
    "model_name": NAME,
    "image": "us-central1-docker.pkg.dev/my-project/trainmaster/trainer:latest",
    "cluster": {"chief": {"machine": "n1-standard-8"}},
    "champion": {"metric": "accuracy", "goal": "maximize"},
}
UPLOADED = timedelta(seconds=MemoryModels.UPLOAD_S + 1)
EMPTY = ("images", "regions", "machines", "service_accounts", "networks", "output_prefixes")
DENIED = ServiceFailed("Vertex AI", "upload a version", "403 Permission 'aiplatform.models.upload' denied")


@pytest.fixture(params=["memory", "vertex"])
def models(request: pytest.FixtureRequest) -> Iterator[tuple[ModelRegistry, Callable[[str], None]]]:
    """Every registry, and what waits until an upload has ended."""
    if request.param == "memory":
        clock = ManualClock(START)
        yield MemoryModels(clock), lambda _: clock.advance(UPLOADED)
        return
    proxy: Proxy = request.getfixturevalue("jobs_proxy")
    vertex = VertexModels(project=PROJECT, region=REGION, endpoint=proxy.url)

    def wait(operation: str) -> None:
        wait_until(lambda: vertex._client().get_operation({"name": operation}).done, "the upload ends")

    yield vertex, wait
    vertex._client().transport.close()


def upload(run_id: str, **changes: Any) -> ModelUpload:
    fields = {
        "model_id": NAME,
        "display_name": NAME,
        "artifact_uri": "gs://models/m",
        "image": None,
        "labels": {RUN_LABEL: run_id},
        "description": "run",
    }
    return ModelUpload(**{**fields, **changes})


def test_versions_are_found_by_their_run_and_the_alias_is_on_one(
    models: tuple[ModelRegistry, Callable[[str], None]],
) -> None:
    registry, wait = models
    assert registry.versions_of_run(NAME, "a") is None
    first = present(registry.upload(upload("a"), is_first=True))
    assert registry.upload(upload("b"), is_first=True) is None
    wait(first)
    assert registry.why_upload_failed(first) == ""
    assert registry.versions_of_run(NAME, "b") == []
    wait(present(registry.upload(upload("b"), is_first=False)))
    wait(present(registry.upload(upload("a"), is_first=False)))
    of_a, (of_b,) = (present(registry.versions_of_run(NAME, run_id)) for run_id in "ab")
    assert [version.number for version in (*of_a, of_b)] == [1, 3, 2]
    for version in (of_a[0], of_b):
        registry.change_alias(version, ALIAS)
        assert present(registry.version_with_alias(NAME, ALIAS)).number == version.number
    assert ALIAS in present(registry.versions_of_run(NAME, "b"))[0].aliases
    registry.change_alias(of_b, f"-{ALIAS}")
    assert registry.version_with_alias(NAME, ALIAS) is None
    assert (
        registry.why_upload_failed(f"projects/{PROJECT}/locations/{REGION}/models/{NAME}/operations/1") == ""
    )


def test_a_refusal_of_the_service_says_what_it_refused(jobs_proxy: Proxy) -> None:
    vertex = VertexModels(project=PROJECT, region=REGION, endpoint=jobs_proxy.url)
    image = PREBUILT["scikit_learn"]
    with pytest.raises(ServiceFailed, match=r"upload a version of the model own: .*no files under"):
        vertex.upload(upload("a", model_id="own", image=image), is_first=True)
    vertex._client().transport.close()


def world_with(mode: RegistryMode = RegistryMode.CHAMPIONS, **registry: Any) -> World:
    rules = request_rules_with(
        regions=(REGION,), admission=Admission(), registry=Registry(mode=mode, **registry)
    )
    return World(rules)


def run(world: World, name: str, accuracy: float, boundary: Boundary | None = None, **champion: Any) -> str:
    """A run that has ended, and whose steps have run once."""
    asked = {**REQUEST, "champion": {**REQUEST["champion"], **champion}}
    incoming = world.drop_and_launch(json.dumps(asked).encode(), f"requests/{name}.json")
    job = world.train(world.record(incoming.run_id), accuracy)
    world.complete(world.hint(job), boundary)
    return incoming.run_id


def registration(world: World, run_id: str) -> Registration | None:
    record = world.record(run_id)
    RECORD.validate(encoded(record))
    return present(record.completion).registration


def roll_back(world: World, boundary: Boundary | None = None, name: str = "requests/back.json") -> None:
    world.launch(world.drop(json.dumps({"rollback": {"model_name": NAME}}).encode(), name), boundary)


def registered_version(world: World) -> str | None:
    document = world.document(f"champions/{NAME}.json")
    CHAMPION.validate(document)
    found: str | None = document.get("registered", {}).get("version")
    return found


def test_a_promotion_is_a_version_with_the_alias_and_a_rollback_moves_the_alias_alone() -> None:
    world = world_with(labels={"cost-center": "ml"}, display_name="{model_name} of ours")
    first = run(world, "a", 0.7)
    begun = present(registration(world, first))
    assert (begun.state, begun.operation) == (RegistrationState.UPLOADING, "operations/1")
    assert world.active() == [first]
    world.reconcile_after(UPLOADED)
    assert world.active() == []
    model = "projects/1/models/cassava"
    assert registration(world, first) == Registration(
        state=RegistrationState.REGISTERED, model=model, version="1", alias=ALIAS
    )
    (version,) = world.models.versions(NAME).values()
    assert version.artifact_uri == f"gs://champions/{NAME}/{first}"
    assert (version.image, version.display_name) == (PREBUILT["saved_model"], "cassava of ours")
    assert version.labels == {RUN_LABEL: first, "cost-center": "ml"}
    assert f"run: {first}\n" in version.description
    assert "metrics: accuracy 0.7, loss 1\ndata set: cassava, 0.1.0, train\n" in version.description
    second, worse = run(world, "b", 0.8), run(world, "c", 0.6)
    world.reconcile_after(UPLOADED)
    assert (world.models.aliased_run(NAME), registered_version(world)) == (second, "2")
    assert registration(world, worse) is None
    roll_back(world)
    assert (world.models.aliased_run(NAME), registered_version(world)) == (first, "1")
    assert len(world.models.uploads) == 2


def test_without_a_registry_the_step_makes_no_call() -> None:
    calls = {}
    for mode in RegistryMode:
        boundary = Boundary()
        run(world_with(mode), "a", 0.7, boundary)
        calls[mode] = Counter(boundary.calls)
    assert calls[RegistryMode.CHAMPIONS] == calls[RegistryMode.ALL]
    more = calls[RegistryMode.ALL] - calls[RegistryMode.OFF]
    assert more == {"find versions": 1, "upload": 1, "read ledger": 1}


def test_every_run_with_a_model_is_registered_and_only_the_champion_has_the_alias() -> None:
    world = world_with(RegistryMode.ALL, serving={})
    first, second = run(world, "a", 0.7), run(world, "b", 0.6)
    for _ in range(3):  # the second waits until its model is there, and then for its own upload
        world.reconcile_after(UPLOADED)
    uploads = list(world.models.versions(NAME).values())
    folder = f"gs://{MODELS}/{NAME}/{second}/model"
    assert [each.artifact_uri for each in uploads] == [f"gs://champions/{NAME}/{first}", folder]
    assert [each.image for each in uploads] == [None, None]
    assert world.models.aliased_run(NAME) == first
    found = present(registration(world, second))
    assert (found.version, found.alias) == ("2", None)


@pytest.mark.parametrize("call", ["find versions", "upload", "check upload", "move alias"])
def test_a_service_that_refuses_stops_no_other_step_and_is_asked_again_until_it_works(call: str) -> None:
    world = world_with()
    run_id = run(world, "a", 0.7, At(call, before=raising(DENIED)))
    refused = At(call, before=raising(DENIED))
    world.reconcile_after(UPLOADED) if call == "move alias" else None
    for _ in range(3):
        world.clock.advance(timedelta(minutes=2))
        world.reconcile(refused)
    if call in ("find versions", "upload"):
        found = present(registration(world, run_id))
        assert (found.state, found.error) == (RegistrationState.FAILED, str(DENIED))
        assert set(steps_done(world.record(run_id))) == set(STEPS) - {"registry"}
    for _ in range(3):
        world.reconcile_after(timedelta(minutes=10))
    assert present(registration(world, run_id)).state is RegistrationState.REGISTERED
    assert (world.models.aliased_run(NAME), len(world.models.uploads)) == (run_id, 1)


def test_a_service_that_never_works_is_given_up_with_the_reason_on_record() -> None:
    world = world_with()
    run_id = run(world, "a", 0.7)
    world.models.failure = "Model directory is expected to contain exactly one of: [model.pkl, model.joblib]."
    passes = 0
    while world.active():
        world.reconcile_after(timedelta(hours=1))
        passes += 1
        assert passes < 3 * OUTAGE_ATTEMPTS_MAX
    found = present(registration(world, run_id))
    assert found.state is RegistrationState.FAILED
    assert "exactly one of: [model.pkl" in present(found.error)
    assert f"given up after {OUTAGE_ATTEMPTS_MAX} attempts" in world.record(run_id).problems[-1]


def test_an_upload_that_leaves_no_version_within_an_hour_is_repeated() -> None:
    world = world_with()
    world.models.UPLOAD_S = 10**6
    run_id = run(world, "a", 0.7)
    world.reconcile_after(step.UPLOADED_WITHIN - timedelta(minutes=1))
    assert list(world.models.uploads) == ["operations/1"]
    world.models.UPLOAD_S = 30
    for _ in range(2):
        world.reconcile_after(timedelta(minutes=1))
    assert present(registration(world, run_id)).operation is None  # the model is being made: 409
    world.models._ends_at["operations/1"] = world.clock.now()
    world.reconcile_after(timedelta(minutes=1))
    assert present(registration(world, run_id)).version == "1"


def test_a_champion_without_a_version_leaves_no_other_one_with_the_alias() -> None:
    """The registry was switched on after the first promotion."""
    world = World()
    first = run(world, "a", 0.7)
    world.request_rules = world_with().request_rules
    run(world, "b", 0.8)
    world.reconcile_after(UPLOADED)
    assert registered_version(world) == "1"
    roll_back(world)
    assert (world.models.aliased_run(NAME), registered_version(world)) == (None, None)
    assert world.document(f"champions/{NAME}.json")["current"]["run_id"] == first


def test_the_alias_follows_a_champion_that_comes_while_it_is_moved() -> None:
    world = world_with()
    first = run(world, "a", 0.7)
    world.reconcile_after(UPLOADED)
    second = run(world, "b", 0.8)
    world.clock.advance(UPLOADED)
    world.reconcile(At("move alias", before=only_at(1, lambda: roll_back(world))))
    assert world.document(f"champions/{NAME}.json")["current"]["number"] == 3
    assert world.models.aliased_run(NAME) == first
    found = present(registration(world, second))
    assert (found.state, found.version, found.alias) == (RegistrationState.REGISTERED, "2", None)


@pytest.mark.parametrize("ends_first", [2, 3])
def test_the_alias_leaves_no_version_while_two_later_champions_are_uploaded(ends_first: int) -> None:
    world = world_with()
    first = run(world, "a", 0.7)
    world.reconcile_after(UPLOADED)
    world.models.UPLOAD_S = 3 * 60
    second = run(world, "b", 0.8)
    third = run(world, "c", 0.9)
    world.models._ends_at[f"operations/{ends_first}"] = world.clock.now()
    world.reconcile_after(timedelta(minutes=1))
    assert world.models.aliased_run(NAME) == (first if ends_first == 2 else third)
    for _ in range(2):
        world.reconcile_after(timedelta(minutes=3))
    assert (world.models.aliased_run(NAME), len(world.models.uploads)) == (third, 3)
    assert present(registration(world, second)).alias is None
    assert world.active() == []


def test_an_order_whose_alias_was_not_moved_is_delivered_again() -> None:
    world = world_with()
    first, second = run(world, "a", 0.7), run(world, "b", 0.8)
    for _ in range(2):
        world.reconcile_after(UPLOADED)
    order = world.drop(json.dumps({"rollback": {"model_name": NAME}}).encode(), "requests/back.json")
    with pytest.raises(ServiceFailed):
        world.launch(order, At("move alias", before=raising(DENIED)))
    assert world.document("status/requests/back.json.json")["state"] == "succeeded"
    assert world.models.aliased_run(NAME) == second
    world.launch(order)
    assert (world.models.aliased_run(NAME), len(world.models.uploads)) == (first, 2)


def test_a_run_is_registered_after_its_comparison_with_the_champion_though_that_failed_first() -> None:
    world = world_with()
    broken = At("copy to champions", before=raising(ServiceFailed("Cloud Storage", "copy", "it is down")))
    run_id = run(world, "a", 0.7, broken)
    assert (registration(world, run_id), world.models.uploads) == (None, {})
    world.reconcile(broken)
    world.reconcile_after(timedelta(seconds=1))  # the comparison is not repeated yet
    for _ in range(3):
        world.reconcile_after(timedelta(minutes=10))
    assert world.models.aliased_run(NAME) == run_id


def test_what_is_approved_is_registered_as_the_policy_of_then_says() -> None:
    """The alias must not stay on an earlier champion when the registry was off at the run's end."""
    world = world_with()
    run(world, "a", 0.7)
    world.reconcile_after(UPLOADED)
    rules, world.request_rules = world.request_rules, world_with(RegistryMode.OFF).request_rules
    second = run(world, "b", 0.8, approve=True)
    world.reconcile_after(UPLOADED)
    world.request_rules = rules
    order = json.dumps({"approve": {"model_name": NAME, "run": second}}).encode()
    world.launch(world.drop(order, "requests/approve.json"))
    for _ in range(2):
        world.reconcile_after(UPLOADED)
    assert (world.models.aliased_run(NAME), registered_version(world)) == (second, "2")
    assert world.active() == []


def smoke_job(world: World, run_id: str) -> Job:
    smoke = present(present(world.record(run_id).completion).smoke)
    return world.jobs.read(present(smoke.job).name)


def end_smoke(world: World, run_id: str, state: JobState = JobState.SUCCEEDED, **written: Any) -> None:
    """End the job that tries out the run's model; `written`: what it leaves."""
    job = smoke_job(world, run_id)
    name = job.output_uri.removeprefix(f"gs://{CHAMPIONS}/") + "/metrics.json"
    world.objects.write(CHAMPIONS, name, json.dumps(written).encode(), if_generation=None)
    world.jobs.become(job.name, JobState.RUNNING)
    world.clock.advance(timedelta(seconds=60))
    world.complete(world.hint(world.jobs.become(job.name, state)))


def test_the_alias_moves_only_after_the_model_has_predicted() -> None:
    world = world_with(smoke=True)
    run_id = run(world, "a", 0.7)
    job, copy = smoke_job(world, run_id), f"gs://{CHAMPIONS}/{NAME}/{run_id}"
    assert job.output_uri == f"gs://{CHAMPIONS}/_evaluations/_smoke/{NAME}/{run_id}"
    assert (job.labels[STEP_LABEL], job.display_name) == ("smoke", f"{run_id}-smoke")
    assert present(present(world.record(run_id).completion).smoke).inputs == {
        "model": f"{copy}/",
        "format": "saved_model",
        "example": f"{copy}/example.json",
    }
    world.reconcile_after(UPLOADED)
    found = present(registration(world, run_id))
    assert (found.version, found.alias, found.smoke) == ("1", None, "is not over")
    assert world.models.aliased_run(NAME) is None
    end_smoke(world, run_id, model={"predictions": 2})
    found = present(registration(world, run_id))
    assert (found.alias, found.smoke) == (ALIAS, "passed")
    assert (world.models.aliased_run(NAME), world.active()) == (run_id, [])


def test_what_the_smoke_test_costs_is_in_the_estimate_and_counted_once_it_is_over() -> None:
    caps = Admission(caps=Caps(cost_per_day=Decimal(1000), currency="USD"))
    estimates = []
    for smoke in (False, True):
        world = world_with(smoke=smoke)
        world.request_rules = replace(
            world.request_rules, policy=replace(present(world.request_rules.policy), admission=caps)
        )
        world.prices = lambda: PRICES
        run_id = run(world, "a", 0.7)
        record = world.record(run_id)
        estimates.append(present(present(present(record.request).estimate).at_most))
    hourly = PRICES.table(REGION).machine(EvaluationPolicy().machine)
    assert estimates[1] - estimates[0] > present(hourly)
    alone = present(present(record.completion).cost)
    world.reconcile_after(UPLOADED)
    assert not settled(world)
    end_smoke(world, run_id, model={"predictions": 2})
    cost = present(present(world.record(run_id).completion).cost)
    assert present(cost.total) - present(alone.total) == present(cost.evaluation) > 0
    (mark,) = settled(world)
    assert world.objects.describe(LEDGER, mark).metadata["cost"] == f"{cost.total:f}"


def settled(world: World) -> list[str]:
    return [each.name for each in world.objects.listing(LEDGER, "started/") if "/ended/" in each.name]


def test_a_cancel_of_the_run_ends_its_smoke_test_and_the_alias_stays() -> None:
    world = world_with(smoke=True)
    run_id = run(world, "a", 0.7)
    for _ in range(2):  # a delivery may be repeated
        world.launch(world.drop(json.dumps({"cancel": {"run": run_id}}).encode(), "requests/end.json"))
    assert smoke_job(world, run_id).state is JobState.CANCELLED
    for _ in range(2):
        world.reconcile_after(UPLOADED)
    found = present(registration(world, run_id))
    assert (found.version, found.alias) == ("1", None)
    assert present(found.smoke) == "failed: an order cancelled it"
    assert (world.models.aliased_run(NAME), world.active()) == (None, [])


def test_a_step_that_is_given_up_cancels_its_job() -> None:
    world = world_with(smoke=True)
    run_id = run(world, "a", 0.7)
    world.jobs.become(smoke_job(world, run_id).name, JobState.RUNNING)
    while world.active():
        assert smoke_job(world, run_id).state is JobState.RUNNING
        world.reconcile(Unreadable())
        world.clock.advance(timedelta(hours=1))
    assert present(present(world.record(run_id).completion).smoke).cancelled is None
    assert smoke_job(world, run_id).state is JobState.CANCELLED


class Unreadable(Boundary):
    """The service shows no job."""

    def cross(self, name: str, call: Callable[[], Any]) -> Any:
        if name in ("list jobs", "read job"):
            raise DENIED
        return super().cross(name, call)


@pytest.mark.parametrize(
    ("state", "written", "reason"),
    [
        (JobState.SUCCEEDED, {"failure": "ValueError: no\n input"}, "failed: ValueError: no input"),
        (JobState.SUCCEEDED, {"model": {}}, "no numbers of the model"),
        (JobState.FAILED, {"model": {"predictions": 2}}, "failed: its job ended as"),
    ],
)
def test_a_failed_smoke_test_leaves_the_alias_where_it_is_and_says_why(
    state: JobState, written: dict[str, Any], reason: str
) -> None:
    world = world_with(smoke=True)
    first = run(world, "a", 0.7)
    end_smoke(world, first, model={"predictions": 2})
    world.reconcile_after(UPLOADED)
    second = run(world, "b", 0.8)
    end_smoke(world, second, state, **written)
    for _ in range(2):
        world.reconcile_after(UPLOADED)
    found = present(registration(world, second))
    assert (found.state, found.alias) == (RegistrationState.REGISTERED, None)
    assert reason in present(found.smoke)
    assert world.active() == []
    assert world.document(f"champions/{NAME}.json")["current"]["run_id"] == second
    assert (world.models.aliased_run(NAME), registered_version(world)) == (first, "1")
    roll_back(world)
    assert world.models.aliased_run(NAME) == first


def test_a_format_that_no_program_loads_fails_without_a_job_and_the_policy_may_be_switched_on_later() -> None:
    world = world_with()
    first = run(world, "a", 0.7)
    world.reconcile_after(UPLOADED)
    world.request_rules = world_with(smoke=True).request_rules
    incoming = world.drop_and_launch(json.dumps(REQUEST).encode(), "requests/b.json")
    second = present(incoming.run_id)
    folder = f"{NAME}/{second}/model/"
    manifest = json.dumps(export_manifest(f"gs://{MODELS}/{folder}", 0.8)).replace(
        "saved_model.pb", "model.onnx"
    )
    for name, content in (("model.onnx", "graph"), ("export.json", manifest)):
        world.objects.write(MODELS, folder + name, content.encode(), if_generation=None)
    job = present(world.record(second).job)
    world.jobs.become(job.name, JobState.RUNNING)
    world.complete(world.hint(world.jobs.become(job.name, JobState.SUCCEEDED)))
    for _ in range(3):
        world.reconcile_after(UPLOADED)
    reason = "no program of ours loads a model of the format onnx"
    assert present(registration(world, second)).smoke == f"failed: {reason}"
    assert [job for job in world.jobs.all() if STEP_LABEL in job.labels] == []
    assert world.models.aliased_run(NAME) == first
    roll_back(world)
    assert (world.models.aliased_run(NAME), registered_version(world)) == (first, "1")


@pytest.mark.parametrize(
    ("serving", "images"),
    [
        (None, PREBUILT),
        ("none", {}),
        ({"xgboost": "none", "pytorch": "a-docker.pkg.dev/p/r/i:1"}, {
            "saved_model": PREBUILT["saved_model"],
            "scikit_learn": PREBUILT["scikit_learn"],
            "pytorch": "a-docker.pkg.dev/p/r/i:1",
        }),
    ],
)  # fmt: skip
def test_the_policy_names_a_container_for_each_format(serving: object, images: dict[str, str]) -> None:
    policy = {
        "schema": "policy.v1",
        **{name: [] for name in EMPTY},
        "max_replicas": 1,
        "max_timeout_s": 1,
        "env": {"refused": []},
        "registry": {"mode": False, **({"serving": serving} if serving is not None else {})},
    }
    registry = policy_from(policy, {}).registry
    assert (registry.mode, registry.serving) == (RegistryMode.OFF, images)


@pytest.mark.parametrize(
    ("model_name", "team", "begins"),
    [
        ("cassava", None, "cassava"),
        ("cassava", "vision", "vision_cassava"),
        ("m" * 63, None, "m" * 63),
        ("m" * 63, "vision", f"vision_{'m' * 45}-"),
    ],
)
def test_a_teams_model_has_an_id_of_its_own(model_name: str, team: str | None, begins: str) -> None:
    model_id = registry_model_id(model_name, team)
    assert re.fullmatch(f"{begins}([0-9a-f]{{10}})?", model_id)
    assert len(model_id) <= 63


def test_the_champion_of_each_team_is_a_model_of_its_own() -> None:
    registry = Registry(mode=RegistryMode.CHAMPIONS, labels={"cost-center": "ml"})
    world = world_of_teams(registry=registry)
    runs = {team: drop(world, team, REQUEST) for team in (VISION, SPEECH)}
    for record in runs.values():
        world.complete(world.hint(world.train(record)))
    world.reconcile_after(UPLOADED)
    for team, record in runs.items():
        (version,) = world.models.versions(f"{team}_{NAME}").values()
        assert (version.display_name, version.labels["trainmaster_team"]) == (f"{team}/{NAME}", team)
        assert world.models.aliased_run(f"{team}_{NAME}") == record.run_id
