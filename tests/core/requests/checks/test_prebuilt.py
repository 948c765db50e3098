"""Prebuilt containers of Google are refused after the end of their availability, and warned about before it."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from tests.core.ai_platform_jobs import package, pool, with_packages
from tests.core.parsed import answer_to
from tests.core.shipped import REQUEST_RULES
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.policy.policy import RetiredImages
from trainmaster.orchestrator.core.requests.ai_platform.programs import EXECUTOR
from trainmaster.orchestrator.core.requests.checks.programs import CONTAINERS, READ_ON, container_of
from trainmaster.orchestrator.core.requests.request import Request

END = date(2026, 7, 11)
DAY = timedelta(days=1)
IMAGE = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest"
OURS = {
    "model_name": "census",
    "image": IMAGE,
    "labels": {"team": "vision"},
    "cluster": {"chief": {"machine": "n1-standard-4"}},
}
VERTEX = {"workerPoolSpecs": [pool("n1-standard-4", 1, package(IMAGE))]}


def answer(
    document: dict[str, Any], today: date, retired: RetiredImages = RetiredImages.REFUSE
) -> Request | Refused:
    rules = replace(
        REQUEST_RULES, today=today, policy=replace(present(REQUEST_RULES.policy), retired_images=retired)
    )
    return answer_to(document, request_rules=rules, name="census")


CASES = pytest.mark.parametrize(
    ("document", "path"),
    [
        (OURS, "$.image"),
        (VERTEX, "$.workerPoolSpecs[0].pythonPackageSpec.executorImageUri"),
        (with_packages(), "$.trainingInput.runtimeVersion"),
    ],
    ids=["an image of ours", "an executor of Vertex AI", "a runtime of AI Platform"],
)


@CASES
def test_a_container_past_its_end_is_refused_with_the_repair(document: dict[str, Any], path: str) -> None:
    refused = instance_of(Refused, answer(document, END + DAY))
    (fault,) = refused.faults
    assert fault.path == path
    assert fault.problem == (
        f"the prebuilt container has been unavailable since 2026-07-11, according to Google's list of {READ_ON}"
    )
    assert fault.repair.startswith("build your own image")


@CASES
def test_a_container_within_90_days_of_its_end_is_warned_about(document: dict[str, Any], path: str) -> None:
    for today, is_warned in ((END - 91 * DAY, False), (END - 90 * DAY, True), (END, True)):
        request = instance_of(Request, answer(document, today))
        warnings = [each for each in request.warnings if "is available only until 2026-07-11" in each.problem]
        assert [each.path for each in warnings] == [path] * is_warned


def test_a_policy_may_let_ended_containers_through_with_a_warning() -> None:
    request = instance_of(Request, answer(OURS, END + DAY, RetiredImages.WARN))
    (warning,) = request.warnings
    assert "unavailable since 2026-07-11" in warning.problem


def test_a_request_without_a_policy_is_held_against_the_dates_too() -> None:
    rules = replace(REQUEST_RULES, policy=None, today=END + DAY)
    instance_of(Refused, answer_to(OURS, request_rules=rules))


@pytest.mark.parametrize(
    ("image", "ends"),
    [
        ("europe-docker.pkg.dev/vertex-ai/training/tf-gpu.2-17.py310", END),
        ("asia-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-2.py310:latest", date(2026, 10, 23)),
        (f"us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-0@sha256:{'0' * 64}", date(2025, 6, 30)),
        ("us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-11", date(2024, 11, 15)),
        ("us-docker.pkg.dev/vertex-ai/training/ray-gpu.2-42.py311:latest", date(2027, 3, 1)),
        ("us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-99.py313:latest", None),
        ("us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-171.py310:latest", None),
        ("us-docker.pkg.dev/my-project/training/tf-cpu.2-17.py310:latest", None),
        ("us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest", None),
    ],
)
def test_a_container_is_known_by_its_name_whatever_its_region_and_tag(image: str, ends: date | None) -> None:
    container = container_of(image)
    assert (container and container.available_until) == ends


def test_legacy_packages_are_given_the_container_with_tensorflow_that_ended_last() -> None:
    container = present(container_of(EXECUTOR.format(kind="cpu")))
    assert container is container_of(EXECUTOR.format(kind="gpu"))
    with_tensorflow = [row for row in CONTAINERS if row.names.startswith("tf-")]
    assert container.available_until == max(row.available_until for row in with_tensorflow)


def test_every_container_is_patched_before_it_ends() -> None:
    assert all(row.patched_until < row.available_until for row in CONTAINERS)
