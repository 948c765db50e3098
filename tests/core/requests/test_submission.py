"""A request reaches the service whole, in messages that the service's own types take without a word unknown."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob
from google.protobuf import json_format

from tests.core.roles import (
    L4,
    MACHINE,
    OTHER,
    TARGET,
    TUNING,
    accepted,
    cluster,
    pools,
    request,
    submitted,
)
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.submission import Submission, submission_of

OURS = "tm-trainer@my-project.iam.gserviceaccount.com"
OTHERS = "others-trainer@my-project.iam.gserviceaccount.com"


def message_of(submission: Submission) -> Any:
    """The service's own message; json_format refuses fields and values that it does not know."""
    kind = CustomJob if submission.kind is JobKind.CUSTOM else HyperparameterTuningJob
    return json_format.ParseDict(submission.body, kind.pb()())


def test_a_wait_without_end_is_said_and_not_left_out() -> None:
    document = request(scheduling={"flex_start": True, "max_wait_s": 0}, cluster={"chief": L4})
    job: Any = submitted(document).body["jobSpec"]
    wait = {"strategy": "FLEX_START", "maxWaitDuration": "0s", "timeout": "86400s"}
    assert job["scheduling"] == wait


@pytest.mark.parametrize(
    ("roles", "counts"),
    [
        ({}, [1]),
        ({"workers": {**MACHINE, "count": 3}}, [1, 3]),
        ({"evaluators": {**MACHINE, "count": 1}}, [1, 0, 0, 1]),
        ({"workers": {**MACHINE, "count": 2}, "evaluators": {**MACHINE, "count": 1}}, [1, 2, 0, 1]),
        (
            {
                "evaluators": {**MACHINE, "count": 2},
                "parameter_servers": {**MACHINE, "count": 3},
                "workers": {**MACHINE, "count": 4},
            },
            [1, 4, 3, 2],
        ),
    ],
)
def test_each_role_has_a_pool_even_an_absent_one(roles: Mapping[str, Any], counts: list[int]) -> None:
    document = request(cluster=cluster(**roles))
    assert [pool == {} for pool in pools(document)] == [count == 0 for count in counts]
    specs = message_of(submitted(document)).job_spec.worker_pool_specs
    assert [spec.replica_count for spec in specs] == counts


def test_every_role_is_told_whose_environment_it_reads() -> None:
    roles = {role: {**MACHINE, "count": 1} for role in ("workers", "parameter_servers", "evaluators")}
    roles["evaluators"] |= {"image": OTHER, "env": {"A": "1"}}
    for pool in pools(request(cluster=cluster(**roles, replica_environment="ai_platform"))):
        said = {"name": "TRAINMASTER_REPLICA_ENVIRONMENT", "value": "ai_platform"}
        assert said in pool["containerSpec"]["env"]


@pytest.mark.parametrize("work", [{}, {"tuning": TUNING}])
@pytest.mark.parametrize(
    ("named", "deployed", "runs_as"),
    [(None, OURS, OURS), (OTHERS, OURS, OTHERS), (OTHERS, None, OTHERS), (None, None, "")],
)
def test_a_job_runs_as_the_account_of_its_request_or_else_of_the_deployment(
    work: Mapping[str, Any], named: str | None, deployed: str | None, runs_as: str
) -> None:
    spec = accepted(request(**work, service_account=named)).spec
    message = message_of(submission_of("run-1", spec, replace(TARGET, service_account=deployed)))
    assert (message.trial_job_spec if work else message.job_spec).service_account == runs_as
