"""The places that a plan may name are those that the emulators ask at, and each knows its kinds."""

import pytest

from tests.judges.surfaces import calls
from tests.stack.services import filled_rule
from trainstack.iam.authorization import REQUIRED
from trainstack.injections import BadInjectionsError, plan_from
from trainstack.injections.http import resource_method, resource_subjects
from trainstack.injections.plan import PLACES
from trainstack.logging.entry import SURFACE
from trainstack.monitoring.api import SURFACE as MONITORING
from trainstack.pubsub.api.methods import METHODS
from trainstack.pubsub.injections import place_of
from trainstack.storage.api.routes import ROUTES
from trainstack.vertex.resources.methods import methods

VERTEX = {
    f"{method.verb} {method.path}": (method.verb, filled_rule(method.path, "p1")) for _, method in methods()
}


def places(service: str) -> set[str]:
    return {place for place in PLACES if place.startswith(f"{service}.")}


def refusal(at: object, kind: object = "delay") -> str:
    with pytest.raises(BadInjectionsError) as refused:
        plan_from({"name": "f1", "at": at, "kind": kind})
    return str(refused.value)


def test_the_places_of_storage_are_its_routes_and_its_notifications() -> None:
    routes = {f"storage.{route.name}" for route in ROUTES}
    assert places("storage") == routes | {"storage.notify"}


def test_the_places_of_pubsub_are_its_methods_its_stream_and_what_goes_out() -> None:
    methods = {place_of(name) for each in METHODS.values() for name in each}
    assert places("pubsub") == methods | {"pubsub.streamingPull", "pubsub.deliver"}


@pytest.mark.parametrize(
    ("service", "requests", "more"),
    [("vertex", VERTEX, {"vertex.jobs"}), ("logging", calls(SURFACE, "logging.v2"), {"logging.export"}),
     ("monitoring", calls(MONITORING, "monitoring.v3"), set())],
)  # fmt: skip
def test_the_places_of_vertex_logging_and_monitoring_are_the_methods_that_need_permissions_as_requests_are_named(
    service: str, requests: dict[str, tuple[str, str]], more: set[str]
) -> None:
    named = {
        f"{service}.{resource_method({'type': 'http', 'method': verb, 'path': path})}"
        for verb, path in requests.values()
    }
    assert places(service) == named | more
    assert named == {name for name in REQUIRED if name.startswith(f"{service}.")}


def test_a_job_is_matched_by_its_display_name_and_its_labels() -> None:
    scope = {"type": "http", "method": "POST", "path": "/v1/projects/p1/locations/us-central1/customJobs"}
    body = b'{"displayName": "job of r1", "labels": {"run": "r1"}}'
    assert {"job of r1", "run=r1"} <= set(resource_subjects(scope, body))


@pytest.mark.parametrize(
    "at",
    ["*", "storage.*", "*.create", "vertex.*.create", "vertex.customJobs.[gl]*", "functions.on-*", "functions.f?",
     "functions.*", "functions.upload", "f*.upload", "pubsub.deliver"],
)  # fmt: skip
def test_a_place_or_a_glob_that_fits_one_is_taken(at: str) -> None:
    assert plan_from({"name": "f1", "at": at, "kind": "delay"}).injections[0].at == at


@pytest.mark.parametrize(
    ("at", "nearest"),
    [
        ("storage.objects.insret", "storage.objects.insert"),
        ("storage.object.insert", "storage.objects.insert"),
        ("storage.objets.*", "storage.objects.*"),
        ("vertex.customJob.create", "vertex.customJobs.create"),
        ("vertx.customJobs.create", "vertex.customJobs.create"),
        ("pubsub.Publish", "pubsub.publish"),
        ("logging.entries.wirte", "logging.entries.write"),
        ("function.NAME", "functions.NAME"),
    ],
)
def test_a_misspelt_place_is_refused_with_the_nearest(at: str, nearest: str) -> None:
    said = refusal(at)
    assert said.startswith("$.at: expected SERVICE.METHOD or a glob of it")
    assert f"found {at!r}; did you mean {nearest!r}? " in said


def test_what_a_service_has_is_listed_and_else_the_services() -> None:
    assert "logging has entries.list, entries.write, export, logs.delete" in refusal("logging.qqqqqqqqqqqq")
    assert "the services are storage, pubsub, vertex, logging, monitoring, functions." in refusal(
        "disk.write"
    )
    for none in ("functions.", "functions.on request", "functions.a.b", "", 7, None, ["storage.*"]):
        assert "the services are storage" in refusal(none)


@pytest.mark.parametrize(
    ("at", "kind", "known"),
    [
        ("pubsub.deliver", "kill", "delay, duplicate, reorder, drop"),
        ("pubsub.del?ver", "kill", "delay, duplicate, reorder, drop"),
        ("storage.not*fy", "reorder", "error_before, error_after, delay, duplicate, drop"),
        ("pubsub.streaming*", "drop", "error_before, delay"),
        ("storage.objects.insert", "kill", "error_before, error_after, delay, duplicate, drop"),
        ("functions.*", "reorder", "error_before, error_after, delay, duplicate, drop, kill, kill_after"),
        ("[ls]*.export", "kill_after", "error_before, error_after, delay, duplicate, drop"),
    ],
)
def test_a_kind_that_no_place_of_a_glob_knows_is_refused(at: str, kind: str, known: str) -> None:
    assert refusal(at, kind) == f"$.kind: {at} supports only {known}, found {kind!r}."


def test_a_glob_that_is_longer_than_any_place_is_refused() -> None:
    """Python takes above 20 s to read one of 30,000 brackets."""
    document = {"injections": [{"name": "a", "at": "[" * 30_000, "kind": "error", "match": "[" * 30_000}]}
    with pytest.raises(BadInjectionsError) as refused:
        plan_from(document)
    assert "at most 1024 characters" in str(refused.value)
