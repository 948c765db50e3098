"""A request's fallbacks: what each makes of it, and what is wrong with them."""

import json
from typing import Any

import pytest

from tests.core.admission_cases import (
    CHIEF,
    GCLOUD,
    V100,
    answer,
    candidates,
    document,
    faults,
    policy,
    sound,
)
from tests.core.roles import T4
from tests.core.shipped import schema
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.admission.candidates import parse_candidates
from trainmaster.orchestrator.core.requests.draft import MAX_FALLBACKS, with_patch
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.spec import Accelerator

WITH_GPU = {"cluster": {"chief": {**CHIEF, "accelerator": V100, "disk": {"size_gb": 300}}}}


def test_each_candidate_is_the_request_with_one_fallback_laid_over_it() -> None:
    found = candidates(
        **WITH_GPU,
        scheduling={"spot": True, "timeout_s": 60},
        fallbacks=[
            {"region": "europe-west4"},
            {"cluster": {"chief": {"accelerator": {"type": "NVIDIA_TESLA_T4"}}}},
            {"cluster": {"chief": {"accelerator": None, "disk": None}}, "scheduling": {"spot": False}},
        ],
    )
    assert [candidate.number for candidate in found] == [0, 1, 2, 3]
    assert [candidate.region for candidate in found] == [
        "us-central1",
        "europe-west4",
        "us-central1",
        "us-central1",
    ]
    chiefs = [candidate.spec.cluster.chief for candidate in found]
    assert [chief.accelerator for chief in chiefs] == [
        Accelerator(**V100), Accelerator(**V100), Accelerator(**T4), None,
    ]  # fmt: skip
    assert [chief.disk is None for chief in chiefs] == [False, False, False, True]
    assert [candidate.spec.scheduling.spot for candidate in found] == [True, True, True, False]
    assert {candidate.spec.scheduling.timeout_s for candidate in found} == {60}


def test_each_candidate_has_its_own_deadline_for_the_start() -> None:
    found = candidates(
        scheduling={"start_within_s": 60},
        fallbacks=[
            {"region": "europe-west4"},
            {"scheduling": {"spot": True, "start_within_s": 90}},
            {"region": "europe-west4", "scheduling": {"spot": True, "start_within_s": None}},
        ],
    )
    assert [candidate.spec.scheduling.start_limit_s for candidate in found] == [60, 60, 90, 7200]


def test_candidates_say_for_people_where_and_on_what_they_run() -> None:
    workers = {**CHIEF, "count": 3}
    found = candidates(
        cluster={"chief": {"machine": "n1-standard-8", "accelerator": T4}, "workers": workers, "evaluators": {**CHIEF, "count": 1}},
        scheduling={"spot": True},
        fallbacks=[{"region": "europe-west4", "scheduling": {"spot": False, "flex_start": True}}],
    )  # fmt: skip
    assert found[0].text == (
        "us-central1, n1-standard-8 with 1 NVIDIA_TESLA_T4, 3 workers of n1-standard-4, "
        "1 evaluator of n1-standard-4, spot"
    )
    assert found[1].text.startswith("europe-west4, ")
    assert found[1].text.endswith(", flex start")


def test_the_region_of_a_legacy_job_is_one_of_the_policys_and_its_candidates() -> None:
    job: dict[str, Any] = {
        "jobId": "census_1",
        "trainingInput": {
            "scaleTier": "CUSTOM",
            "masterType": "n1-standard-4",
            "masterConfig": {"imageUri": "us-docker.pkg.dev/my-project/r/i"},
            "region": "europe-west4",
        },
    }
    found = instance_of(Request, answer(job))
    (candidate,) = parse_candidates(found.document)
    assert candidate.region == "europe-west4"
    assert "another region" in faults(job, under=policy(regions=["us-central1"]))["$.trainingInput.region"]


@pytest.mark.parametrize(
    ("fallback", "path", "words"),
    [
        ({"region": "mars-north1"}, "$.fallbacks[0].region", "allowed: us-central1, europe-west4"),
        ({"regio": "europe-west4"}, "$.fallbacks[0].regio", "did you mean 'region'?"),
        ({}, "$.fallbacks[0]", "of these only what differs"),
        ("europe-west4", "$.fallbacks[0]", "expected a mapping"),
        (
            {"cluster": {"chief": {"machine": "n1-standard-5"}}},
            "$.fallbacks[0].cluster.chief.machine",
            "did you mean 'n1-standard-",
        ),
        (
            {"cluster": {"chief": {"machine": "e2-standard-4"}}},
            "$.fallbacks[0].cluster.chief.accelerator.type",
            "e2-standard-4 does not support it",
        ),
        (
            {"cluster": {"chief": {"accelerator": {"count": 3}}}},
            "$.fallbacks[0].cluster.chief.accelerator.count",
            "does not support this many",
        ),
        (
            {"cluster": {"workers": {"machine": "n1-standard-8"}}},
            "$.fallbacks[0].cluster.workers",
            "but not add any",
        ),
        (
            {"cluster": {"chief": {"count": 2}}},
            "$.fallbacks[0].cluster.chief.count",
            "unknown key",
        ),
        ({"image": "evil.example/x"}, "$.fallbacks[0].image", "unknown key"),
        ({"scheduling": {"timeout_s": 5}}, "$.fallbacks[0].scheduling.timeout_s", "unknown key"),
        (
            {"scheduling": {"spot": True, "flex_start": True}},
            "$.fallbacks[0].scheduling",
            "flex_start",
        ),
        ({"scheduling": {"start_within_s": 1.5}}, "$.fallbacks[0].scheduling.start_within_s", "integer"),
        ({"scheduling": {"start_within_s": 60}}, "$.fallbacks[0]", "the same resources as the request itself"),
        ({"scheduling": {"spot": False}}, "$.fallbacks[0]", "the same resources as the request itself"),
        ({"region": "us-central1"}, "$.fallbacks[0]", "the same resources as the request itself"),
    ],
)  # fmt: skip
def test_each_fault_of_a_fallback_has_its_own_place(fallback: object, path: str, words: str) -> None:
    found = faults(document(**WITH_GPU, fallbacks=[fallback]))
    assert any(place.startswith(path) and words in text for place, text in found.items()), found
    assert all(place.startswith("$.fallbacks[0]") for place in found), found


def test_a_fallback_that_repeats_another_is_a_fault() -> None:
    other = {"region": "europe-west4"}
    found = faults(document(fallbacks=[other, {"scheduling": {"spot": True}}, other]))
    assert list(found) == ["$.fallbacks[2]"]
    assert "the same resources as fallbacks[0]" in found["$.fallbacks[2]"]


def test_a_fallback_with_an_unknown_key_is_not_also_a_repetition() -> None:
    found = faults(document(fallbacks=[{"machine": "n1-standard-8"}]))
    assert list(found) == ["$.fallbacks[0].machine"]


def test_faults_of_the_request_and_its_fallbacks_are_reported_once() -> None:
    written = document(image="evil.example/x", fallbacks=[{"region": "europe-west4"}, {"region": "mars"}])
    assert list(faults(written)) == ["$.fallbacks[1].region", "$.image"]


def test_more_fallbacks_than_the_schema_allows_are_one_fault() -> None:
    machines = [f"n1-standard-{size}" for size in (8, 16, 32)] + [
        f"n1-highmem-{size}" for size in (2, 4, 8, 16)
    ]
    patches: list[dict[str, Any]] = [{"cluster": {"chief": {"machine": machine}}} for machine in machines]
    patches += [{"region": "europe-west4"}, {"scheduling": {"spot": True}}]
    assert len(patches) == MAX_FALLBACKS + 1
    assert list(faults(document(fallbacks=patches))) == ["$.fallbacks"]
    assert schema("training_request.v1")["properties"]["fallbacks"]["maxItems"] == MAX_FALLBACKS


def with_board_of(location: str, **changes: Any) -> dict[str, Any]:
    return document(
        service_account="trainer@my-project.iam.gserviceaccount.com",
        tensorboard=f"projects/my-project/locations/{location}/tensorboards/1",
        **changes,
    )


@pytest.mark.parametrize(
    ("written", "path", "words"),
    [
        (
            with_board_of("us-central1", region="europe-west4"),
            "$.region",
            "tensorboard belongs to us-central1",
        ),
        (with_board_of("us-central1", fallbacks=[{"region": "europe-west4"}]), "$.fallbacks[0].region", ""),
        (with_board_of("europe-west4"), "$.tensorboard", "found 'us-central1'"),
        (
            document(
                psc_interface_config={
                    "network_attachment": "projects/p/regions/europe-west4/networkAttachments/a"
                }
            ),
            "$.psc_interface_config.network_attachment",
            "network_attachment belongs to europe-west4",
        ),
        (with_board_of("europe-west4", fallbacks=[{"scheduling": {"spot": True}}]), "$.tensorboard", ""),
    ],
)
def test_a_region_that_a_resource_of_the_request_is_not_of_is_a_fault(
    written: dict[str, Any], path: str, words: str
) -> None:
    found = faults(written)
    assert list(found) == [path]
    assert words in found[path]


@pytest.mark.parametrize("region", ["us-central1", "europe-west4"])
def test_a_resource_of_the_requests_region_is_sound(region: str) -> None:
    sound(with_board_of(region, region=region, fallbacks=[{"scheduling": {"spot": True}}]))


def test_a_disallowed_region_is_a_fault_at_its_key() -> None:
    assert "allowed: us-central1, europe-west4" in faults(document(region="europe-west9"))["$.region"]


@pytest.mark.parametrize(("written", "meant"), [({}, 50), ({"priority": 0}, 0), ({"priority": 100}, 100)])
def test_the_priority_is_fifty_unless_the_request_says_otherwise(written: dict[str, Any], meant: int) -> None:
    assert sound(document(**written)).spec.priority == meant


@pytest.mark.parametrize("priority", [-1, 101, "high", 1.5, True])
def test_a_value_that_is_not_a_priority_is_a_fault(priority: object) -> None:
    assert list(faults(document(priority=priority))) == ["$.priority"]


def test_a_label_says_the_priority_where_the_dialect_has_no_key_for_it() -> None:
    labelled = {**GCLOUD, "labels": {"trainmaster_priority": "70", "team": "a"}}
    spec = sound(labelled).spec
    assert (spec.priority, dict(spec.labels)) == (70, {"team": "a"})
    wrong = {**GCLOUD, "labels": {"trainmaster_priority": "urgent"}}
    assert list(faults(wrong)) == ["$.labels.trainmaster_priority"]


RFC_7396 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]
"""The test cases of RFC 7396, appendix A."""


@pytest.mark.parametrize(("target", "patch", "result"), RFC_7396)
def test_a_patch_is_applied_as_the_standard_says(target: object, patch: object, result: object) -> None:
    before = json.dumps(target)
    assert with_patch(target, patch) == result
    assert json.dumps(target) == before
