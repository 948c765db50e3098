"""Whatever the schema and the checks accept is a job that the service's own types can hold, and that JobService takes."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.generated import documents, without
from tests.core.requests.vertex.test_round_trip import assert_same, read_again
from tests.core.roles import EXECUTOR, MACHINE, OTHER, POLICY, REDUCTION_SERVER, TARGET, TRAINER, answer
from tests.core.shipped import schema
from tests.core.vertex_files import snake
from tests.judges.jobs import job_faults
from trainmaster.orchestrator.adapters.job_messages import message_of
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.draft import ROLES
from trainmaster.orchestrator.core.requests.reading import VERTEX_CUSTOM, VERTEX_TUNING
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.submission import submission_of
from trainstack.jobs.resource.machines import machine_types_from
from trainstack.jobs.resource.validation import Surroundings
from trainstack.jobs.resource.validation import faults_of as faults_of_job
from trainstack.surface import load_surface
from trainstack.tuning.validation import faults_of as faults_of_tuning_job

ROOT = Path(__file__).parents[3]
SERVICE = Surroundings(
    location="us-central1",
    machines=machine_types_from(ROOT / "functions/policy.yaml"),
    surface=load_surface(ROOT / "trainstack/vertex/surface.toml"),
)
TRIES = 12
NOT_OF_THE_JOB = {"script", "champion", "priority", "model_uri", "fallbacks", "region"}
"""What a job of the service says nothing of, like RETRIES of its scheduling."""
RETRIES = {"retries", "retry_on", "start_within_s"}
IMAGES = st.sampled_from([TRAINER, OTHER, REDUCTION_SERVER])


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Any]:
    """A machine of the policy with what it takes."""
    row = draw(st.sampled_from(POLICY.machines))
    machine: dict[str, Any] = {"machine": draw(st.sampled_from(row.types))}
    if row.accelerators and (row.accelerator_required or draw(st.booleans())):
        kind = draw(st.sampled_from(sorted(row.accelerators)))
        machine["accelerator"] = {"type": kind, "count": draw(st.sampled_from(row.accelerators[kind]))}
    if row.tpu_topologies:
        machine["tpu_topology"] = draw(st.sampled_from(row.tpu_topologies))
    return machine


HINTS: dict[str, st.SearchStrategy[Any]] = {
    "image": IMAGES,
    "executor_image": st.just(EXECUTOR),
    "uris": st.just(["gs://my-project-data/code/a.whl"]),
    "args": st.lists(
        st.sampled_from(["--strategy=mirrored", "--strategy=parameter_server", "--epochs=1", "x y"]),
        max_size=3,
    ),
    "prefix_uri": st.sampled_from(["gs://models", "gs://models/team/"]),
    "service_account": st.just("trainer@my-project.iam.gserviceaccount.com"),
    "encryption_key": st.just("projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k"),
    "parameters": st.sampled_from(
        [
            {"learning_rate": {"type": "double", "min": 1e-4, "max": 0.1, "scale": "log"}},
            {
                "epochs": {"type": "integer", "min": 1, "max": 9},
                "momentum": {"type": "discrete", "values": [0.5, 0.9]},
            },
        ]
    ),
    "server": st.sampled_from(["10.0.0.2", "192.168.7.7"]),
}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A document of the schema, its roles on machines that there are."""
    document = draw(documents(schema("training_request.v1"), HINTS))
    same = draw(machines()) if draw(st.booleans()) else None
    for role in ROLES:
        if role in document.get("cluster", {}):
            pool = {
                key: value
                for key, value in document["cluster"][role].items()
                if key not in ("machine", "accelerator", "tpu_topology")
            }
            if "count" in pool and role != "chief":
                pool["count"] = draw(st.integers(1, 12))
            document["cluster"][role] = {**pool, **(same or draw(machines()))}
    return document


def accepted(document: dict[str, Any]) -> Request:
    """What is left of the document when everything that is refused is taken out, again and again."""
    for _ in range(TRIES):
        found = answer(document)
        if isinstance(found, Request):
            return found
        document = without(document, found.faults)
        needed = {fault.path for fault in found.faults if fault.problem == "missing"}
        document |= {"image": OTHER} if "$.image" in needed else {}
        if "machine" not in document.setdefault("cluster", {}).setdefault("chief", dict(MACHINE)):
            document["cluster"]["chief"] = MACHINE
            document.get("scheduling", {}).pop("flex_start", None)  # no machine without GPUs is waited for
    assert isinstance(found, Refused)
    raise AssertionError([str(fault) for fault in found.faults])


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_what_is_accepted_is_a_job_that_the_service_takes(document: dict[str, Any]) -> None:
    request = accepted(document)
    submission = submission_of("run-1", request.spec, TARGET)
    assert job_faults(submission.kind, submission.body) == []
    message: Any = message_of(submission)
    job = message.job_spec if "jobSpec" in submission.body else message.trial_job_spec
    refused_by = faults_of_job if "jobSpec" in submission.body else faults_of_tuning_job
    assert refused_by(type(message).pb(message), SERVICE) == []
    cluster = request.document["cluster"]
    assert [bool(spec.replica_count) for spec in job.worker_pool_specs] == [
        role in cluster for role in ROLES[: len(job.worker_pool_specs)]
    ]
    assert job.worker_pool_specs[0].replica_count == 1
    for spec, role in zip(job.worker_pool_specs, ROLES, strict=False):
        programs = ("container_spec" in spec, "python_package_spec" in spec)
        assert sum(programs) == (role in cluster)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests(), st.sampled_from([copy.deepcopy, snake]))
def test_what_was_submitted_is_the_same_job_again_as_a_file_for_gcloud(
    document: dict[str, Any], spelling: Any
) -> None:
    own = {key: part for key, part in document.items() if key not in NOT_OF_THE_JOB}
    if "/" not in own.get("experiment", "/"):
        del own["experiment"]  # a run of the one by that name is made after the end
    if "scheduling" in own:
        own["scheduling"] = {key: part for key, part in own["scheduling"].items() if key not in RETRIES}
    spec = accepted(own).spec
    submission = submission_of("run-1", spec, TARGET)
    dialect = VERTEX_TUNING if submission.kind is JobKind.TUNING else VERTEX_CUSTOM
    body = {**submission.body, "name": "n", "state": "JOB_STATE_FAILED"}
    labels = body.pop("labels")  # its keys are words of the user's
    output = (spec.output_prefix_uri or "gs://models").removesuffix("/")
    expected = replace(spec, output_prefix_uri=output)
    assert_same(read_again({**spelling(body), "labels": labels}, dialect, name=None), expected)
    if submission.kind is JobKind.CUSTOM:
        job_spec: Any = submission.body["jobSpec"]
        bare = {key: part for key, part in job_spec.items() if key != "baseOutputDirectory"}
        expected = replace(spec, labels={}, output_prefix_uri=None, encryption_key=None)
        assert_same(read_again(spelling(bare), dialect, name=spec.model_name), expected)
