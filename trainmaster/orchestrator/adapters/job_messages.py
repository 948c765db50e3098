"""Converts submissions to JobService's messages, and its messages to jobs."""

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from trainmaster.orchestrator.core.completion.experiment import ExperimentRun
from trainmaster.orchestrator.core.documents.codec import decoded_time
from trainmaster.orchestrator.core.job_names import JobKind, job_kind
from trainmaster.orchestrator.core.policy.pools import PoolState
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState, Measured, Trial, TrialState
from trainmaster.partial_import import IMPORTING, VERTEX_CLIENT, import_parts_of

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.types.custom_job import CustomJob
    from google.cloud.aiplatform_v1.types.hyperparameter_tuning_job import HyperparameterTuningJob
    from google.cloud.aiplatform_v1.types.persistent_resource import PersistentResource

_State = TypeVar("_State", JobState, TrialState)


def message_of(submission: Submission) -> "CustomJob | HyperparameterTuningJob":
    """The client's message with the content of the submission.

    Raises:
        ValueError: the service has no such field; the submission is wrong.
    """
    with IMPORTING:
        import_parts_of(*VERTEX_CLIENT)
        from google.cloud.aiplatform_v1.types.custom_job import CustomJob
        from google.cloud.aiplatform_v1.types.hyperparameter_tuning_job import HyperparameterTuningJob

    kind: Any = CustomJob if submission.kind is JobKind.CUSTOM else HyperparameterTuningJob
    message: CustomJob | HyperparameterTuningJob = kind.from_json(json.dumps(submission.body))
    return message


def job_from(job: "CustomJob | HyperparameterTuningJob") -> Job:
    """The job that the message describes. A state that the client's library lacks is `UNSPECIFIED`."""
    kind = job_kind(job.name)
    spec: Any = job.job_spec if kind is JobKind.CUSTOM else job.trial_job_spec
    return Job(
        name=job.name,
        state=_known_state(JobState, job.state, JobState.UNSPECIFIED),
        display_name=job.display_name,
        labels=dict(job.labels),
        output_uri=spec.base_output_directory.output_uri_prefix,
        create_time=_time(job.create_time),
        start_time=_time(job.start_time),
        end_time=_time(job.end_time),
        error=Failure(code=job.error.code, message=job.error.message) if job.error.message else None,
        trials=tuple(map(_trial, job.trials)) if kind is JobKind.TUNING else (),
    )


def pool_state_from(resource: "PersistentResource") -> PoolState:
    """What the message says of a persistent resource."""
    return PoolState(
        name=resource.name,
        is_running=resource.state.name == "RUNNING",
        machines=sum(pool.replica_count for pool in resource.resource_pools),
        used=sum(pool.used_replica_count for pool in resource.resource_pools),
        created_at=resource.create_time,
    )


def experiment_contexts(run: ExperimentRun) -> tuple[dict[str, Any], dict[str, Any]]:  # Any: Context messages
    """The contexts of the experiment and of the run in it, as the SDK creates and reads them.

    Source: experiment_resources.py and experiment_run_resource.py in google/cloud/aiplatform/metadata (2026-11)
    """
    experiment = {
        "display_name": run.experiment,
        "schema_title": "system.Experiment",
        "schema_version": "0.0.1",
        "metadata": {"experiment_deleted": False},
    }
    own = {
        "display_name": run.run_id,
        "schema_title": "system.ExperimentRun",
        "schema_version": "0.0.1",
        "metadata": {"_params": dict(run.params), "_metrics": dict(run.metrics), "_state": run.state},
    }
    return experiment, own


def _known_state(
    kind: type[_State], state: Any, unknown: _State
) -> _State:  # Any: an enum, or a number it lacks
    """The state; `unknown` for one that this version of the client library lacks."""
    try:
        return kind(getattr(state, "name", ""))
    except ValueError:
        return unknown


def _trial(trial: Any) -> Trial:  # Any: proto-plus messages are untyped
    return Trial(
        id=trial.id,
        state=_known_state(TrialState, trial.state, TrialState.UNSPECIFIED),
        parameters={parameter.parameter_id: parameter.value for parameter in trial.parameters},
        final=_measurement_from(trial.final_measurement) if "final_measurement" in trial else None,
        measurements=tuple(map(_measurement_from, trial.measurements)),
        start_time=_time(trial.start_time),
        end_time=_time(trial.end_time),
        infeasible_reason=trial.infeasible_reason,
    )


def _measurement_from(measurement: Any) -> Measured:  # Any: see above
    elapsed = measurement.elapsed_duration
    return Measured(
        metrics={metric.metric_id: metric.value for metric in measurement.metrics},
        step=int(measurement.step_count),
        elapsed_s=elapsed.total_seconds() if elapsed else None,
    )


def _time(moment: Any) -> datetime | None:  # Any: proto-plus's timestamps are untyped
    return decoded_time(moment.rfc3339()) if moment else None
