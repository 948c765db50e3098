"""One suite for every JobService: in memory, and Vertex AI's client against the emulator."""

import json
import time
from dataclasses import replace

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1.services.persistent_resource_service import PersistentResourceServiceClient
from google.cloud.aiplatform_v1.types import HyperparameterTuningJob, PersistentResource

from tests.contract.proxy import Proxy, ProxyFault
from tests.contract.submissions import CREATE, TUNING, submission
from tests.contract.world import PROJECT, REGION, START
from tests.memory import ManualClock, MemoryJobs
from tests.narrowing import present
from trainmaster.orchestrator.adapters.job_messages import job_from
from trainmaster.orchestrator.adapters.vertex import VertexJobs
from trainmaster.orchestrator.core.completion.experiment import ExperimentRun
from trainmaster.orchestrator.core.errors import (
    JobNotFound,
    ServiceFailed,
    SubmissionDeferred,
    SubmissionRefused,
    SubmissionUnknown,
)
from trainmaster.orchestrator.core.job_names import JobKind, job_kind, job_name, location_name, same_job
from trainmaster.orchestrator.core.requests.spec import Tuning
from trainmaster.orchestrator.core.runs.job import JobState, Measured, TrialState
from trainmaster.orchestrator.core.runs.states import END_OF
from trainmaster.orchestrator.ports.services import TrainingJobs


@pytest.fixture(params=["memory", "vertex"])
def jobs(request: pytest.FixtureRequest) -> TrainingJobs:
    if request.param == "memory":
        return MemoryJobs(ManualClock(START), project=PROJECT)
    adapter: TrainingJobs = request.getfixturevalue("vertex")
    return adapter


KINDS = pytest.mark.parametrize(
    ("tuning", "kind"), [(None, JobKind.CUSTOM), (TUNING, JobKind.TUNING)], ids=["custom", "tuning"]
)


@KINDS
def test_a_submitted_job_has_its_runs_words_and_is_found_by_its_run_its_id_and_its_kind(
    jobs: TrainingJobs, tuning: Tuning | None, kind: JobKind
) -> None:
    asked = submission(tuning=tuning)
    job = jobs.submit(asked)
    assert job_kind(job.name) is kind
    assert job.display_name == asked.run_id
    assert job.labels == {"team": "vision", "trainmaster_run_id": asked.run_id, "trainmaster_model": "model"}
    assert job.output_uri == f"gs://models/model/{asked.run_id}"
    assert present(job.create_time).tzinfo is not None
    assert [found.name for found in jobs.of_run(asked.run_id, kind, [REGION])] == [job.name]
    (other,) = set(JobKind) - {kind}
    assert job.name not in [found.name for found in jobs.of_run(asked.run_id, other, [REGION])]
    read = jobs.read(job.name)
    assert same_job(read.name, job.name)
    assert read.display_name == job.display_name


def test_a_job_that_does_not_exist_is_not_found(jobs: TrainingJobs) -> None:
    with pytest.raises(JobNotFound):
        jobs.read(job_name(PROJECT, REGION, JobKind.CUSTOM, "4711"))


def test_a_tuning_is_read_with_its_trials_parameters_and_measurements() -> None:
    """From the client's own message, as the service fills it."""
    message = HyperparameterTuningJob.from_json(
        json.dumps(
            {
                "name": job_name(PROJECT, REGION, JobKind.TUNING, "7"),
                "state": "JOB_STATE_SUCCEEDED",
                "trials": [
                    {
                        "id": "2",
                        "state": "SUCCEEDED",
                        "parameters": [
                            {"parameterId": "units", "value": 64},
                            {"parameterId": "optimizer", "value": "sgd"},
                        ],
                        "finalMeasurement": {
                            "elapsedDuration": "61.500s",
                            "stepCount": "10",
                            "metrics": [{"metricId": "accuracy", "value": 0.5}],
                        },
                        "startTime": "2026-03-01T12:00:00Z",
                    },
                    {"id": "1", "state": "INFEASIBLE", "infeasibleReason": "no metric"},
                ],
            }
        )
    )
    second, first = job_from(message).trials
    assert second.parameters == {"units": 64.0, "optimizer": "sgd"}
    assert second.final == Measured(metrics={"accuracy": 0.5}, step=10, elapsed_s=61.5)
    assert second.start_time == START.replace(hour=12, minute=0, second=0, microsecond=0, month=3, day=1)
    assert (first.state, first.final, first.infeasible_reason) == (TrialState.INFEASIBLE, None, "no metric")


def test_the_sdk_shows_a_run_that_was_kept_in_an_experiment_once_however_often(
    vertex: VertexJobs, jobs_proxy: Proxy
) -> None:
    from google.cloud import aiplatform

    first = ExperimentRun(
        experiment="cats",
        region=REGION,
        run_id="cats_a-20260301t120000-0123456789",
        state="COMPLETE",
        params={"lr": 0.1, "optimizer": "sgd"},
        metrics={"accuracy": 0.75},
    )
    second = replace(first, run_id="cats-20260301t120001-0123456789", state="FAILED", metrics={})
    with pytest.raises(ServiceFailed, match="the project's metadata store is being created"):
        vertex.keep_experiment_run(first)
    for run in (first, first, second):
        vertex.keep_experiment_run(run)
    aiplatform.init(
        project=PROJECT, location=REGION, credentials=AnonymousCredentials(), api_endpoint=jobs_proxy.url,
        api_transport="rest",
    )  # fmt: skip
    shown = {run.name: run for run in aiplatform.ExperimentRun.list(experiment="cats")}
    assert shown.keys() == {first.run_id, second.run_id}
    found = shown[first.run_id]
    assert (found.get_params(), found.get_metrics()) == (first.params, first.metrics)
    assert [run.get_state() for run in shown.values()].count("FAILED") == 1


def test_two_jobs_of_one_run_are_found_oldest_first(jobs: TrainingJobs) -> None:
    first = submission()
    names = [jobs.submit(first).name, jobs.submit(first).name]
    assert [job.name for job in jobs.of_run(first.run_id, JobKind.CUSTOM, [REGION])] == names


@pytest.mark.parametrize("status", [400, 403, 404, 409])
def test_a_final_refusal_has_the_services_message(vertex: VertexJobs, jobs_proxy: Proxy, status: int) -> None:
    jobs_proxy.faults.append(ProxyFault(on=CREATE, status=status, message="machine type is not supported"))
    with pytest.raises(SubmissionRefused) as refusal:
        vertex.submit(submission())
    assert (refusal.value.code, refusal.value.reason) == (status, "machine type is not supported")


PROVISIONING = (
    "Service agents are being provisioned (https://cloud.google.com/vertex-ai/docs/general/access-control#service-agents). "
    "Service agents are needed to read the Cloud Storage file provided. So please try again in a few minutes."
)


@pytest.mark.parametrize(
    ("status", "message"), [(429, "quota exceeded"), (503, "quota exceeded"), (400, PROVISIONING)]
)
def test_a_service_without_quota_or_not_ready_defers_the_submission_which_is_not_repeated(
    vertex: VertexJobs, jobs_proxy: Proxy, status: int, message: str
) -> None:
    jobs_proxy.faults.append(ProxyFault(on=CREATE, status=status, message=message))
    with pytest.raises(SubmissionDeferred) as deferral:
        vertex.submit(submission())
    assert (deferral.value.code, deferral.value.reason) == (status, message)
    assert jobs_proxy.passed == []


@pytest.mark.parametrize(
    "fault",
    [
        ProxyFault(on=CREATE, status=500),
        ProxyFault(on=CREATE, status=503, message="The service is currently unavailable."),
        ProxyFault(on=CREATE, status=504),
        ProxyFault(on=CREATE, lose_answer=True),
        ProxyFault(on=CREATE),
    ],
    ids=["500", "503", "504", "lost answer", "cut connection"],
)
def test_a_submission_that_may_have_happened_is_unknown_and_not_repeated(
    vertex: VertexJobs, jobs_proxy: Proxy, fault: ProxyFault
) -> None:
    asked = submission()
    jobs_proxy.faults.append(fault)
    with pytest.raises(SubmissionUnknown):
        vertex.submit(asked)
    assert jobs_proxy.injected == [fault]
    assert len(vertex.of_run(asked.run_id, JobKind.CUSTOM, [REGION])) == (1 if fault.lose_answer else 0)


def test_rejected_credentials_are_not_the_requests_fault(vertex: VertexJobs, jobs_proxy: Proxy) -> None:
    jobs_proxy.faults.append(ProxyFault(on=CREATE, status=401))
    with pytest.raises(ServiceFailed) as failure:
        vertex.submit(submission())
    assert failure.value.retryable


@pytest.mark.parametrize("status", [400, 403, 500])
def test_a_failed_read_is_a_failure_of_the_service(
    vertex: VertexJobs, jobs_proxy: Proxy, status: int
) -> None:
    jobs_proxy.faults.append(ProxyFault(on="GET ", status=status))
    with pytest.raises(ServiceFailed):
        vertex.read(job_name(PROJECT, REGION, JobKind.CUSTOM, "1"))
    jobs_proxy.faults.append(ProxyFault(on="GET ", status=status))
    with pytest.raises(ServiceFailed):
        vertex.of_run("run-1", JobKind.CUSTOM, [REGION])


def ended(jobs: TrainingJobs, name: str) -> JobState:
    deadline = time.monotonic() + 60
    while (state := jobs.read(name).state) not in END_OF:
        assert time.monotonic() < deadline, state
        time.sleep(0.02)
    return state


@KINDS
def test_a_cancelled_job_ends_as_cancelled(jobs: TrainingJobs, tuning: Tuning | None, kind: JobKind) -> None:
    job = jobs.submit(submission(tuning=tuning, args=("sleep=60",)))
    for _ in range(2):
        jobs.cancel(job.name)
    assert ended(jobs, job.name) is JobState.CANCELLED
    jobs.cancel(job.name)
    assert jobs.read(job.name).state is JobState.CANCELLED


@KINDS
def test_active_jobs_are_listed_as_they_are_read_and_ended_ones_are_not(
    jobs: TrainingJobs, tuning: Tuning | None, kind: JobKind
) -> None:
    over, job = (jobs.submit(submission(tuning=tuning, args=("sleep=60",))) for _ in range(2))
    jobs.cancel(over.name)
    ended(jobs, over.name)
    (listed,) = (found for found in jobs.active(kind, REGION) if found.name in (over.name, job.name))
    read = jobs.read(job.name)
    assert (listed.name, listed.labels, listed.create_time) == (read.name, read.labels, read.create_time)
    assert listed.state not in END_OF
    assert (listed.output_uri, listed.trials) == ("", ()), "they are not asked for"
    jobs.cancel(job.name)


def test_cancelling_a_job_that_does_not_exist_changes_nothing(jobs: TrainingJobs) -> None:
    jobs.cancel(job_name(PROJECT, REGION, JobKind.CUSTOM, "404"))


def test_a_failed_cancellation_is_a_failure_of_the_service(vertex: VertexJobs, jobs_proxy: Proxy) -> None:
    job = vertex.submit(submission())
    jobs_proxy.faults.append(ProxyFault(on=f"POST /v1/{job.name}:cancel", status=503))
    with pytest.raises(ServiceFailed, match="cancel"):
        vertex.cancel(job.name)
    assert len(jobs_proxy.injected) == 1


@pytest.mark.slow
def test_persistent_resources_are_listed_with_their_free_machines_and_deleted(
    vertex: VertexJobs, jobs_url: str
) -> None:
    client = PersistentResourceServiceClient(
        transport="rest", credentials=AnonymousCredentials(), client_options={"api_endpoint": jobs_url}
    )
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 2}
    making = client.create_persistent_resource(
        parent=location_name(PROJECT, REGION),
        persistent_resource=PersistentResource({"resource_pools": [pool]}),
        persistent_resource_id="short",
    )
    (made,) = vertex.pool_states(REGION)
    assert (made.id, made.is_running, made.machines, made.used) == ("short", False, 2, 0)
    assert making.result(timeout=30).name == made.name
    (made,) = vertex.pool_states(REGION)
    assert (made.is_running, made.created_at.tzinfo is not None) == (True, True)
    assert vertex.pool_states("europe-west4") == []
    vertex.delete_pool(made.name)
    assert not vertex.pool_states(REGION) or not vertex.pool_states(REGION)[0].is_running
    vertex.delete_pool(made.name.replace("short", "none"))
