"""Findings from the outcomes of a smoke run. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainmaster.inspect.finding import Finding, Level, Subject, nearest
from trainmaster.inspect.request import Request
from trainmaster.inspect.smoke.last_error import LastError
from trainmaster.inspect.smoke.watch import State
from trainmaster.orchestrator.core.completion.last_error import is_lost_peer_error

SIGNS = {
    "PerReplica": Subject.KERAS,
    "create_per_worker_dataset": Subject.KERAS,
    "Collective ops must be configured": Subject.STRATEGY,
    "task_type": Subject.ROLES,
}
"""Words of TensorFlow's own errors that name the cause."""
MISUSED = 2  # the exit status of argparse, and of this project's trainer, for what cannot be


@dataclass(frozen=True, kw_only=True)
class ReplicaRun:
    """One replica's run. `status` is None for one that was ended from outside; `files` lie in its AIP_MODEL_DIR."""

    name: str
    state: State
    status: int | None
    seconds: float
    last_error: LastError
    files: tuple[str, ...]
    reported: frozenset[str]

    @property
    def is_fine(self) -> bool:
        return self.status == 0 or self.state is State.STOPPED


def judged(outcomes: Sequence[ReplicaRun], request: Request | None) -> list[Finding]:
    """Every finding; `outcomes` begins with the chief's."""
    chief = outcomes[0]
    findings = [*_ends(outcomes), *_writers(outcomes)]
    if chief.status == 0:
        findings += [_model(chief), *_metrics(chief, request)]
    if all(outcome.is_fine for outcome in outcomes):
        longest = max(outcome.seconds for outcome in outcomes)
        together = "both replicas" if len(outcomes) > 1 else "the one replica"
        findings.append(Subject.SMOKE.fine(f"The program finished: {together}, {longest:.0f} s"))
    return findings


def resolved(static: Sequence[Finding], smoke: Sequence[Finding]) -> list[Finding]:
    """All findings, without the open questions that the run has answered."""
    is_done = any(finding.subject is Subject.SMOKE and finding.level is Level.OK for finding in smoke)
    shown = {finding.subject for finding in smoke}
    kept = [
        finding
        for finding in static
        if finding.level is not Level.UNKNOWN or not (is_done or finding.subject in shown)
    ]
    return [*kept, *smoke]


def _ends(outcomes: Sequence[ReplicaRun]) -> Iterator[Finding]:
    failed = [outcome for outcome in outcomes if outcome.state is State.ENDED and outcome.status != 0]
    causes = [
        outcome for outcome in failed if len(outcomes) == 1 or not is_lost_peer_error(outcome.last_error.text)
    ]
    # Of those that failed in the same way, one.
    alike = {
        (each.last_error.text.partition(":")[0], each.last_error.place): each for each in reversed(causes)
    }
    yield from map(_failed, reversed(alike.values()))
    left = [outcome for outcome in outcomes if outcome.state is State.HUNG or outcome in failed]
    if left and not causes:
        yield _hung_replicas(left, outcomes)
    for outcome in outcomes:
        if outcome.state is State.BUSY:
            yield Subject.SMOKE.unknown(
                f"how {outcome.name} would have ended: it was still running after {outcome.seconds:.0f} s",
                outcome.last_error.place,
                repair="Pass arguments for a shorter run after `--`, or allow more time with --smoke_timeout_s.",
            )


def _failed(outcome: ReplicaRun) -> Finding:
    error = outcome.last_error.text
    subject = next((subject for sign, subject in SIGNS.items() if sign in error), Subject.SMOKE)
    if outcome.status == MISUSED and "argument" in error:
        subject = Subject.PARAMETERS
    status = -outcome.status if outcome.status is not None and outcome.status < 0 else outcome.status
    how = f"was killed by signal {status}" if (outcome.status or 0) < 0 else f"exited with status {status}"
    return subject.fault(
        found=f"{outcome.name} {how} after {outcome.seconds:.0f} s{f': {error}' if error else ''}",
        place=outcome.last_error.place,
        cost="The job would fail the same way, after its machines had started and pulled the image.",
        repair="Fix the error; `--keep_output DIR` keeps everything the replicas wrote.",
    )


def _hung_replicas(left: Sequence[ReplicaRun], outcomes: Sequence[ReplicaRun]) -> Finding:
    """Replicas that waited for a peer, forever or until they lost it; where they waited shows what for."""
    first = left[0]
    waited = "waited forever" if first.state is State.HUNG else f"lost a peer after {first.seconds:.0f} s"
    at = f" at `{first.last_error.code}`" if first.last_error.code else ""
    error = f" ({first.last_error.text})" if first.state is State.ENDED else ""
    beside = "".join(
        f"; {other.name} had exited with status {other.status}" for other in outcomes if other not in left
    )
    return Subject.SMOKE.fault(
        found=f"{' and '.join(outcome.name for outcome in left)} {waited}{at}{error}{beside}",
        place=first.last_error.place,
        cost="You pay for all machines until the job fails or times out, and get no model.",
        repair="Make every replica call the same collective operations in the same order: steps, evaluation and saving.",
    )


def _writers(outcomes: Sequence[ReplicaRun]) -> Iterator[Finding]:
    chief, *others = outcomes
    for outcome in others:
        if outcome.files:
            yield Subject.SAVING.fault(
                found=f"{outcome.name} wrote into AIP_MODEL_DIR: {_some(outcome.files)}",
                repair="Write there only from the chief; let the others write to a temporary directory that they remove.",
            )
    if others and chief.files and not any(outcome.files for outcome in others) and chief.status == 0:
        yield Subject.SAVING.fine("Only the chief left files in AIP_MODEL_DIR")


def _model(chief: ReplicaRun) -> Finding:
    if not chief.files:
        return Subject.MODEL_DIR.fault(
            found=f"{chief.name} exited with status 0, but AIP_MODEL_DIR is empty",
            repair='Save below os.environ["AIP_MODEL_DIR"]; with Keras 3 to a file: '
            'os.path.join(os.environ["AIP_MODEL_DIR"], "model.keras").',
        )
    return Subject.MODEL_DIR.fine(f"A model appeared in AIP_MODEL_DIR: {_some(chief.files)}")


def _metrics(chief: ReplicaRun, request: Request | None) -> Iterator[Finding]:
    for metric in request.metrics if request is not None and request.is_tuning else ():
        if metric in chief.reported:
            yield Subject.METRIC.fine(f"{chief.name} reported the study's metric {metric!r}")
            continue
        reported = ", ".join(map(repr, sorted(chief.reported))) or "nothing"
        yield Subject.METRIC.fault(
            found=f"{chief.name} reported {reported}; the study needs {metric!r}."
            f"{nearest(metric, chief.reported)}",
            repair="Report it under exactly the id in the request, on the chief, after each evaluation.",
        )


def _some(paths: Sequence[str]) -> str:
    shown = 3
    return ", ".join(paths[:shown]) + (f" and {len(paths) - shown} more" if len(paths) > shown else "")
