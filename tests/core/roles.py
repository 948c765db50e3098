"""Requests with roles, and what comes of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.core.parsed import answer_to
from tests.core.shipped import NAMES, REQUEST_RULES, deployed_policy_document
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.faults import Fault, Refused
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.submission import Submission, Target, submission_of

TRAINER = "us-central1-docker.pkg.dev/my-project/trainmaster/trainer:latest"
OTHER = "us-central1-docker.pkg.dev/my-project/other/image:v1"
REDUCTION_SERVER = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
EXECUTOR = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest"
MACHINE = {"machine": "n1-standard-4"}
WORKERS: dict[str, Any] = {**MACHINE, "count": 2}
ONE: dict[str, Any] = {**MACHINE, "count": 1}
T4: dict[str, Any] = {"type": "NVIDIA_TESLA_T4", "count": 1}
L4: dict[str, Any] = {"machine": "g2-standard-4", "accelerator": {"type": "NVIDIA_L4", "count": 1}}
PACKAGE = {
    "executor_image": EXECUTOR,
    "uris": ["gs://my-project-data/code/trainer-1.0.tar.gz"],
    "module": "trainer.task",
}
TUNING = {
    "metrics": [{"id": "accuracy", "goal": "maximize"}],
    "parameters": {"learning_rate": {"type": "double", "min": 0.1, "max": 0.2}},
    "max_trials": 2,
}
POLICY = policy_from(deployed_policy_document(), NAMES)
TARGET = Target(project="my-project", region="us-central1", models_bucket="models")


def request(**changes: Any) -> dict[str, Any]:
    """A valid request of one chief with these keys changed; None removes a key."""
    document = {"model_name": "m", "image": OTHER, "cluster": {"chief": MACHINE}, **changes}
    return {key: value for key, value in document.items() if value is not None}


def cluster(**roles: Any) -> dict[str, Any]:
    return {"chief": MACHINE, **roles}


def answer(document: Mapping[str, Any], **policy: Any) -> Request | Refused:
    """The result of parsing the request; `policy` overrides fields of the shipped policy."""
    request_rules = replace(REQUEST_RULES, policy=replace(POLICY, **policy))
    return answer_to(document, request_rules=request_rules)


def accepted(document: Mapping[str, Any], **policy: Any) -> Request:
    found = answer(document, **policy)
    assert isinstance(found, Request), [str(fault) for fault in found.faults]
    return found


def told(document: Mapping[str, Any], **policy: Any) -> dict[str, Fault]:
    """Each fault by its path."""
    refused = instance_of(Refused, answer(document, **policy))
    return {fault.path: fault for fault in refused.faults}


def submitted(document: Mapping[str, Any], **policy: Any) -> Submission:
    return submission_of("run-1", accepted(document, **policy).spec, TARGET)


def pools(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The worker pools of the job that the request becomes."""
    body: Any = submitted(document).body
    found: list[dict[str, Any]] = (body.get("jobSpec") or body["trialJobSpec"])["workerPoolSpecs"]
    return found
