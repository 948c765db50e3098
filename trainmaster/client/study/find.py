"""Finds the tuning job of a run, or one by its name, and reads its study."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.find import Run, find_run
from trainmaster.client.study.read import study_of
from trainmaster.client.study.study import Study
from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.job_names import JobKind, is_job_name
from trainmaster.orchestrator.core.runs.drop_status import reason_of

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


@dataclass(frozen=True, kw_only=True)
class TuningStudy:
    """A tuning job's study, and the run that it belongs to; None if it was named by its job.

    `state` is the job's, for example `JOB_STATE_RUNNING`. `model_uri` is where the best trial leaves its model, None
    while no trial has a result.
    """

    study: Study
    state: str
    has_ended: bool
    model_uri: str | None = None
    run: Run | None = None


def find_tuning(clients: "Clients", text: str) -> TuningStudy:
    """The tuning that `text` means: a run as `find_run` finds it, or the resource name of any tuning job.

    Raises:
        NotFound: there is no such run, or it has no tuning job.
        ClientRefused: `text` is the name of another resource.
        google.api_core.exceptions.NotFound: there is no such job.
    """
    if not text.startswith("projects/"):
        return tuning_of(clients, find_run(clients, text))
    if not is_job_name(text, JobKind.TUNING):
        raise ClientRefused(
            f"{text!r} is not the name of a tuning job. A name is "
            "projects/PROJECT/locations/REGION/hyperparameterTuningJobs/ID."
        )
    return _read(clients, text, None)


def tuning_of(clients: "Clients", run: Run) -> TuningStudy:
    """The same of a run.

    Raises:
        NotFound: the run has no job yet, or its job is not a tuning.
    """
    record = run.record
    if record.job is None:
        reason = reason_of(record)
        why = f": {one_line(reason)}" if reason else ""
        raise NotFound(
            f"{record.run_id} is {record.state} and has no job yet{why}\nFollow it: trainmaster logs -f {record.run_id}"
        )
    if not is_job_name(record.job.name, JobKind.TUNING):
        raise NotFound(
            f"{record.run_id} is not a tuning, so it has no trials to draw. See it: trainmaster logs {record.run_id}"
        )
    return _read(clients, record.job.name, run)


def _read(clients: "Clients", job_name: str, run: Run | None) -> TuningStudy:
    """The best trial's model is where the record says, else below the job's directory."""
    job = clients.read_job(job_name)
    prefix_uri = job.trial_job_spec.base_output_directory.output_uri_prefix.rstrip("/")
    study = study_of(job)
    best = study.best
    recorded = run.record.tuning.best_trial if run is not None and run.record.tuning is not None else None
    model_uri = f"{prefix_uri}/{best.id}/model/" if best and prefix_uri else None
    if recorded is not None and best is not None and recorded.id == best.id:
        model_uri = recorded.model_uri or model_uri
    return TuningStudy(
        study=study, state=job.state.name, has_ended=bool(job.end_time), model_uri=model_uri, run=run
    )
