"""The progress of a running job: a tuning's trials by state and the best so far, or a custom job's last metrics."""

from trainmaster.orchestrator.core.completion.model import METRICS_NAME, parse_metrics
from trainmaster.orchestrator.core.completion.trials import best_trial
from trainmaster.orchestrator.core.names import model_uri
from trainmaster.orchestrator.core.requests.placeholders import MODEL_URI, RUN_ID, find_names
from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.runs.job import Job, Progress, trials_by_state
from trainmaster.orchestrator.core.runs.record import AcceptedRequest


def metrics_uri(job: Job, request: AcceptedRequest, spec: JobSpec) -> str | None:
    """Where the running job may have written its metrics; None if there is nothing to read.

    The service reports a tuning's metrics. Directories that runs share are excluded: they may hold an earlier run's
    metrics.
    """
    if spec.tuning is not None or job.start_time is None:
        return None
    named = request.model_uri
    is_own = named is not None and RUN_ID in find_names(str(request.document.get(MODEL_URI, "")))
    directory = named if named is not None and is_own else model_uri(request.output_uri)
    parent, _, last = directory.rstrip("/").rpartition("/")
    is_file = is_own and "." in last
    return f"{parent}/{METRICS_NAME}" if is_file else f"{parent}/{last}/{METRICS_NAME}"


def progress_of(job: Job, spec: JobSpec, written: bytes | None) -> Progress | None:
    """The job's progress; None if it is not known. `written` is the content of metrics.json.

    An invalid metrics.json is ignored here; if it is still invalid when the run ends, the record names the problem.
    """
    if spec.tuning is not None:
        best = best_trial(job.trials, spec.tuning)
        return Progress(trials=trials_by_state(job.trials), best_trial=best) if job.trials else None
    metrics = parse_metrics(written)
    return Progress(metrics=metrics) if metrics else None
