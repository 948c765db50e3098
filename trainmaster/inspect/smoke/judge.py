"""Findings from the outcomes of a smoke run. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.inspect.finding import FindingSubject, Level, ProgramFinding, nearest, some_of
from trainmaster.inspect.request import ProgramRequest
from trainmaster.inspect.smoke.last_error import LastError
from trainmaster.inspect.smoke.watch import State
from trainmaster.orchestrator.core.completion.last_error import is_lost_peer_error

MISUSED = 2  # the exit status of argparse, and of this project's trainer, for what cannot be
UNKNOWN_FLAG = "flagthatnoprogramknows"  # one word: some parsers exchange dashes and underscores
BELOW_MOUNT = (
    "Functions for plain files need the path below /gcs, where the buckets are mounted: "
    'os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1). Make its folder first.'
)


@dataclass(frozen=True, kw_only=True)
class ReplicaRun:
    """One replica's run. `status` is None for one that was ended from outside.

    `files` lie in its AIP_MODEL_DIR, `stray_files` in its working folder and in TMPDIR; `reported` has the metrics' last values.
    """

    name: str
    state: State
    status: int | None
    seconds: float
    last_error: LastError
    files: tuple[str, ...]
    stray_files: tuple[str, ...]
    reported: Mapping[str, str]

    @property
    def uri_files(self) -> list[str]:
        """What lies in a folder `gs:`, which functions for plain files make of a URI."""
        return [path for path in self.stray_files if path.startswith("gs:/")]

    @property
    def is_fine(self) -> bool:
        return self.status == 0 or self.state is State.STOPPED


def judge_run(
    outcomes: Sequence[ReplicaRun], request: ProgramRequest | None, doubt: str
) -> list[ProgramFinding]:
    """Every finding of one run; `outcomes` begins with the chief's. `doubt` is that of its paths."""
    chief = outcomes[0]
    findings = [*_ends(outcomes), *_writers(outcomes)]
    if chief.status == 0:
        findings += [*_model(chief, doubt), *_metrics(chief, request)]
    if all(outcome.is_fine for outcome in outcomes):
        longest = max(outcome.seconds for outcome in outcomes)
        together = "both replicas" if len(outcomes) > 1 else "the one replica"
        findings.append(FindingSubject.SMOKE.fine(f"The program finished: {together}, {longest:.0f} s"))
    return findings


def judge_values(first: ReplicaRun, second: ReplicaRun, request: ProgramRequest) -> ProgramFinding:
    """Whether the study's parameters arrive, by two trials with different values.

    `second` had a flag that the program cannot know, too. One that refuses it, and nothing else, knows all others.
    """
    subject, error = FindingSubject.PARAMETERS, second.last_error.text
    names = [f"--{parameter.name}" for parameter in request.parameters]
    arrive, others = f"whether {some_of(names)} arrives", error.replace(UNKNOWN_FLAG, "")
    if second.status and UNKNOWN_FLAG in error and not any(name in others for name in names):
        return subject.fine(f"The program takes {some_of(names)}: it refuses a flag that it does not know")
    if second.status != 0:
        seen = f"a second trial, with other values and an unknown flag, did not end: {error}"
        return subject.not_followed(f"{arrive}: {seen}", second.last_error.place)
    results = [
        f"{metric}={first.reported[metric]}, then {metric}={second.reported[metric]}"
        for metric in request.metrics
        if metric in first.reported and first.reported[metric] != second.reported.get(metric)
    ]
    if results or not first.reported:
        return subject.not_followed(
            f"{arrive}: the program refuses no flag; {some_of(results) or 'no metric'} was reported",
            repair="Let it refuse unknown flags, as parse_args does: a misspelt one then ends the run.",
        )
    return subject.fault(
        f"Two trials reported the same {some_of([*first.reported])}, though every parameter had another value",
        level=Level.WARNING,
        cost="If the values do not arrive, all trials are alike, and you pay for each.",
        repair=f"Print the values of {some_of(names)} where they are used.",
    )


def resolve(static: Sequence[ProgramFinding], smoke: Sequence[ProgramFinding]) -> list[ProgramFinding]:
    """All findings, without the open questions that the run has answered, or asks itself."""
    answered = {finding.subject for finding in smoke}
    if any(finding.subject is FindingSubject.SMOKE and finding.level is Level.OK for finding in smoke):
        answered.add(FindingSubject.ARGUMENTS)  # the program ran with them
    kept = (
        finding
        for finding in static
        if finding.level is not Level.NOT_FOLLOWED or finding.subject not in answered
    )
    return [*kept, *smoke]


def _ends(outcomes: Sequence[ReplicaRun]) -> Iterator[ProgramFinding]:
    failed = [outcome for outcome in outcomes if outcome.state is State.ENDED and outcome.status != 0]
    causes = [
        outcome for outcome in failed if len(outcomes) == 1 or not is_lost_peer_error(outcome.last_error.text)
    ]
    yield from map(_failure, causes[:1])
    left = [outcome for outcome in outcomes if outcome.state is State.HUNG or outcome in failed]
    if left and not causes:
        yield _hung_replicas(left, outcomes)
    for outcome in outcomes:
        if outcome.state is State.BUSY:
            yield FindingSubject.SMOKE.not_followed(
                f"how {outcome.name} would have ended: it was still running after {outcome.seconds:.0f} s",
                outcome.last_error.place,
                repair="Pass arguments for a shorter run after `--`, or allow more time with --smoke_timeout_s.",
            )


def _failure(outcome: ReplicaRun) -> ProgramFinding:
    error = outcome.last_error.text
    subject, repair = (
        FindingSubject.SMOKE,
        "Fix the error; `--keep_output DIR` keeps everything the replicas wrote.",
    )
    if outcome.status == MISUSED and "argument" in error:
        subject = FindingSubject.ARGUMENTS
    elif "gs:/" in error and ("No such file" in error or "does not exist" in error):
        subject, repair = FindingSubject.MODEL_DIR, BELOW_MOUNT
    status = outcome.status or 0
    how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
    return subject.fault(
        found=f"{outcome.name} {how} after {outcome.seconds:.0f} s{f': {error}' if error else ''}",
        place=outcome.last_error.place,
        cost="The job would fail the same way, after its machines had started and pulled the image.",
        repair=repair,
    )


def _hung_replicas(left: Sequence[ReplicaRun], outcomes: Sequence[ReplicaRun]) -> ProgramFinding:
    """Replicas that waited for a peer, forever or until they lost it; where they waited shows what for."""
    first = left[0]
    line = f" at `{first.last_error.code}`" if first.last_error.code else ""
    waited = f"waited forever{line}"
    if first.state is State.ENDED:
        waited = f"lost a peer after {first.seconds:.0f} s{line} ({first.last_error.text})"
    beside = "".join(
        f"; {other.name} had exited with status {other.status}" for other in outcomes if other not in left
    )
    return FindingSubject.SMOKE.fault(
        found=f"{' and '.join(outcome.name for outcome in left)} {waited}{beside}",
        place=first.last_error.place,
        cost="You pay for all machines until the job fails or times out, and get no model.",
        repair="Make every replica call the same collective operations in the same order: steps, evaluation and saving.",
    )


def _writers(outcomes: Sequence[ReplicaRun]) -> Iterator[ProgramFinding]:
    chief, *others = outcomes
    if writer := next((outcome for outcome in outcomes if outcome.uri_files), None):
        yield FindingSubject.MODEL_DIR.fault(
            f"{writer.name} wrote into a folder called gs: in its working folder, not into a bucket: "
            f"{some_of(writer.uri_files)}",
            cost="These files are lost with the machine.",
            repair=BELOW_MOUNT,
        )
    for outcome in others:
        if outcome.files:
            yield FindingSubject.MODEL_DIR.fault(
                f"{outcome.name} wrote into AIP_MODEL_DIR: {some_of(outcome.files)}",
                cost="All replicas share one AIP_MODEL_DIR: they overwrite each other's files, and the model may be "
                "corrupt after you have paid for the whole training.",
                repair="Write there only from the chief; let the others write to a temporary directory that they remove.",
            )
    if others and chief.files and not any(outcome.files for outcome in others) and chief.status == 0:
        yield FindingSubject.MODEL_DIR.fine("Only the chief left files in AIP_MODEL_DIR")


def _model(chief: ReplicaRun, doubt: str) -> Iterator[ProgramFinding]:
    if chief.files and doubt:
        yield FindingSubject.MODEL_DIR.not_followed(
            f"whether the model reaches a bucket: AIP_MODEL_DIR was a folder here, with {some_of(chief.files)}; {doubt}",
            repair="On Vertex AI it is a gs:// URI. " + BELOW_MOUNT,
        )
    elif chief.files:
        yield FindingSubject.MODEL_DIR.fine(f"A model appeared in AIP_MODEL_DIR: {some_of(chief.files)}")
    elif not chief.uri_files:
        elsewhere = f"; it wrote {some_of(chief.stray_files)}" if chief.stray_files else ""
        yield FindingSubject.MODEL_DIR.fault(
            f"{chief.name} exited with status 0, but AIP_MODEL_DIR is empty{elsewhere}",
            repair='Save below os.environ["AIP_MODEL_DIR"]; with Keras 3 to a file: '
            'os.path.join(os.environ["AIP_MODEL_DIR"], "model.keras").',
        )


def _metrics(chief: ReplicaRun, request: ProgramRequest | None) -> Iterator[ProgramFinding]:
    for metric in request.metrics if request is not None else ():
        if metric in chief.reported:
            yield FindingSubject.METRIC.fine(f"{chief.name} reported the study's metric {metric!r}")
            continue
        reported = ", ".join(map(repr, sorted(chief.reported))) or "nothing"
        yield FindingSubject.METRIC.fault(
            f"{chief.name} reported {reported}; the study needs {metric!r}.{nearest(metric, chief.reported)}",
            repair="Report it under exactly the id in the request, on the chief, after each evaluation.",
        )
