"""The looks and messages of verbs that follow a run, and their exit status at its end."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.verb import parsed_with, talk
from trainmaster.client.find import Run
from trainmaster.client.runs.facts import has_timed_out, trials_text
from trainmaster.client.terminal import one_line
from trainmaster.client.times import parse_duration
from trainmaster.orchestrator.core.runs.states import RunState

REASON_MAX_CHARS = 500
"""Of each of its lines."""
REASON_MAX_LINES = 8
_IN_WORDS = {
    RunState.SUCCEEDED: "has succeeded",
    RunState.PARTIALLY_SUCCEEDED: "has partially succeeded",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "was cancelled",
    RunState.REJECTED: "was rejected",
    RunState.EXPIRED: "has expired",
}
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    metavar="TIME",
    callback=parsed_with(lambda text: parse_duration(text).total_seconds()),
    help="stop waiting after this time, for example 15m",
)
"""The option `--timeout`, as a `timeout_s` in seconds or None."""
require_model_option = click.option(
    "--require-model",
    "requires_model",
    is_flag=True,
    help="end with 1 if the run succeeds without a model",
)
"""The option `--require-model`, as `requires_model`."""


def say_change(run: Run) -> None:
    """The state of a run that has not ended, and why it waits, on standard error; `say_end` says the last one."""
    if not run.record.ended:
        _say_state(run)


def _say_state(run: Run) -> None:
    """The run, its state, and why it waits or ended badly, or the problems of its success.

    A reason of several lines keeps them, up to REASON_MAX_LINES.
    """
    record = run.record
    waiting = record.admission.waiting
    reason = record.failure.message if record.failure else waiting.reason if waiting else ""
    if record.state is RunState.REJECTED and record.problems:
        reason = record.problems[0]
    if record.state is RunState.SUCCEEDED:
        reason = "; ".join(record.problems)
    lines = [one_line(line, REASON_MAX_CHARS) for line in reason.split("\n")[:REASON_MAX_LINES]]
    trials = f", {text}" if (text := trials_text(record)) else ""
    more = ": " + "\n  ".join(lines) if reason else ""
    how = "timed out" if has_timed_out(record) else in_words(record.state)
    talk(f"{record.run_id} {how}{trials}{more}")


def in_words(state: RunState) -> str:
    """The state as a verb phrase whose subject is the run: `has succeeded`, `is running`."""
    return _IN_WORDS.get(state, f"is {state}")


def say_end(run: Run, *, requires_model: bool = False) -> ExitStatus:
    """Say how the run ended, and if badly, why, the likely repair and how to see more; 0 for success, else 1.

    `run` is `settled`, so that its end appears once, with the cause. A run that succeeded without a model is a success,
    unless `requires_model`; the commands that show more are printed for it, too.
    """
    from trainmaster.client.runs.repairs import repair_of
    from trainmaster.client.wait import lacks_reason

    _say_state(run)
    if run.record.state is RunState.SUCCEEDED:
        _say_verdict(run)
        if run.record.model is not None:
            return ExitStatus.DONE
        if requires_model:
            talk("The exit status is 1: --require-model is given, and no model was found.")
        _say_more(run)
        return ExitStatus.FINDING if requires_model else ExitStatus.DONE
    if lacks_reason(run):
        talk("The service has not read the cause from the job's log yet; status will show it.")
    failure = run.record.failure
    if failure is not None and (repair := repair_of(failure, run.record.run_id, run.record)) is not None:
        talk(f"Likely repair: {repair}")
    _say_more(run)
    return ExitStatus.FINDING


def _say_verdict(run: Run) -> None:
    """Whether the model became champion, and why, if its request asks for that."""
    from trainmaster.client.wait import lacks_verdict

    completion = run.record.completion
    verdict = completion.champion if completion else None
    if verdict is not None:
        decision = (
            "was promoted" if verdict.promoted else "was not promoted" + " yet" * bool(verdict.approve_by)
        )
        talk(f"Its model {decision} to champion: {one_line(verdict.reason, REASON_MAX_CHARS)}")
    elif lacks_verdict(run):
        talk("The service has not compared its model with the champion yet; status will show the result.")


def _say_more(run: Run) -> None:
    run_id = run.record.run_id
    had_job = run.record.job is not None or run.record.submission.abandoned_jobs
    talk(f"See more:\n  trainmaster status {run_id}" + (f"\n  trainmaster logs {run_id}" if had_job else ""))


@contextmanager
def run_survives_interrupt(*run_ids: str) -> Iterator[None]:
    """End the command after Ctrl-C, and say that the runs continue and how to see or cancel them."""
    try:
        yield
    except KeyboardInterrupt:
        subject = "run continues" if len(run_ids) == 1 else "runs continue"
        talk(f"\nStopped following. The {subject}:")
        for run_id in run_ids:
            talk(f"  trainmaster status {run_id}\n  trainmaster cancel {run_id}")
        raise click.exceptions.Exit(ExitStatus.INTERRUPTED) from None


@contextmanager
def order_survives_interrupt(see: str) -> Iterator[None]:
    """End the command after Ctrl-C, and say that the order stays given and which command shows its outcome."""
    try:
        yield
    except KeyboardInterrupt:
        talk(f"\nStopped waiting. An order that was sent is carried out all the same. See: {see}")
        raise click.exceptions.Exit(ExitStatus.INTERRUPTED) from None
