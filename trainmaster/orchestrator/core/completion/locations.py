"""The places where an ended run's model may be: the request's model_uri or `--job-dir`, and AIP_MODEL_DIR."""

from dataclasses import dataclass
from datetime import UTC, datetime

from trainmaster.orchestrator.core.completion.trials import best_trial
from trainmaster.orchestrator.core.names import model_uri, trial_output_uri
from trainmaster.orchestrator.core.requests.placeholders import (
    MODEL_URI,
    RUN_ID,
    TRIAL,
    find_names,
    text_with_values,
)
from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.record import AcceptedRequest
from trainmaster.orchestrator.core.runs.states import END_OF

_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class ModelLocation:
    """One URI at which to look for a model.

    Attributes:
        uri: AIP_MODEL_DIR, which ends in `/`, or the URI in the request, which is a directory or a file.
        is_named: the URI is in the request, as `model_uri` or `--job-dir`.
        since: the start of the job, if other runs may write to the URI: only files created from then on belong to this
            run. None: only this run writes there.
    """

    uri: str
    is_named: bool = False
    since: datetime | None = None


def model_locations(job: Job, request: AcceptedRequest, spec: JobSpec) -> tuple[ModelLocation, ...]:
    """Where the ended job's model may be, in the order to look: the chief's, or a tuning's best trial's.

    Empty while the job runs, and if there is no best trial. A `model_uri` in the request precedes AIP_MODEL_DIR; a
    `--job-dir` follows it, because it holds checkpoints too.
    """
    if job.state not in END_OF:
        return ()
    best = best_trial(job.trials, spec.tuning) if spec.tuning is not None else None
    if spec.tuning is not None and best is None:
        return ()
    output_uri = trial_output_uri(request.output_uri, best.id) if best else request.output_uri
    own = ModelLocation(uri=model_uri(output_uri))
    if request.model_uri is None:
        return (own,)
    # `request.model_uri` has the run's id filled in: only the document shows whether other runs share the URI.
    written = str(request.document.get(MODEL_URI, ""))
    started_at = job.start_time or job.create_time or _NEVER
    named = ModelLocation(
        uri=text_with_values(request.model_uri, **{TRIAL: best.id} if best else {}),
        is_named=True,
        since=None if RUN_ID in find_names(written) else started_at,
    )
    return (named, own) if written else (own, named)


def shared_location(job: Job, request: AcceptedRequest) -> ModelLocation | None:
    """Where the running job may overwrite an earlier run's model; None if only this run writes there.

    A `--job-dir` is excluded: a restarted program continues there.
    """
    written = str(request.document.get(MODEL_URI, ""))
    if request.model_uri is None or not written or RUN_ID in find_names(written) or job.start_time is None:
        return None
    fixed, has_more, _ = request.model_uri.partition("${")
    uri = fixed[: fixed.rindex("/")] if has_more else fixed
    return ModelLocation(uri=uri, is_named=True, since=job.start_time)
