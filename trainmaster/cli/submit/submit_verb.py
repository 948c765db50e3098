"""`trainmaster submit`: check request files or a script, send them, and follow their runs."""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmaster.cli.exits import ExitStatus, Stop
from trainmaster.cli.runs.following import run_survives_interrupt, say_change, say_end
from trainmaster.cli.submit.options import (
    Following,
    WithArguments,
    check_together,
    image_of,
    provide_image,
    submit_options,
)
from trainmaster.cli.verb import (
    JSON,
    NAME,
    YAML,
    output_option,
    print_data,
    print_names,
    says_where,
    takes_context_to_change,
    takes_include,
    takes_team,
    talk,
)
from trainmaster.client.clients import Clients

if TYPE_CHECKING:
    from trainmaster.client.submission.edits import Edits
    from trainmaster.client.submission.examination import Examination
    from trainmaster.client.submission.send import Sent


@click.command(cls=WithArguments)
@click.argument("files", metavar="[FILE]...", nargs=-1)
@submit_options
@takes_include
@takes_team
@output_option(NAME, JSON, YAML)
@takes_context_to_change
def submit(
    clients: Clients,
    *,
    files: tuple[str, ...],
    arguments: tuple[str, ...],
    image: str | None,
    settings: tuple[str, ...],
    matrix: tuple[str, ...],
    key: str | None,
    yes: bool,
    following: Following,
    output: str,
    **chosen: Any,  # Any: the other fields of Edits, as their options read them
) -> int:
    """Start a run of each request FILE, or of a Python script, and print the run's id.

    Each file is checked first, as the service does it; if any has a fault, nothing is sent. - is standard input.
    With --script or --module, the project is packed without what .gitignore names, uploaded once, and run in the trainer's
    image or --image, with the packages that it names. The words behind -- are the program's arguments. A program that
    will certainly end at once is refused. On a terminal it asks before it sends what may cost more than the policy's
    confirm_above_usd.

    Exit status: 0 submitted, or with --wait or --logs succeeded; 1 a run ended in another way; 2 a fault; 5 not ended
    in time; of several runs, the worst. Ctrl-C ends this command, not the run.
    """
    from trainmaster.client.submission.edits import Edits
    from trainmaster.client.submission.settings import parse_settings

    script, module = chosen["script"], chosen["module"]
    check_together(files, following, script=script, module=module, image=image, key=key)
    edits = Edits(
        args=arguments,
        image=image_of(image, clients.context),
        settings=parse_settings(settings, matrix),
        **chosen,
    )
    requests = _sound_requests(clients, files, edits, is_message=key is not None)
    provide_image(image, clients.context)
    return send_and_follow(clients, requests, following, key=key, output=output, yes=yes)


def send_and_follow(
    clients: Clients,
    requests: "Sequence[Examination]",
    following: Following,
    *,
    key: str | None = None,
    output: str,
    yes: bool,
) -> ExitStatus:
    """Send the requests, print the ids of their runs, and follow the runs if asked; the worst of their ends.

    Without `yes`, ask first if they may cost much and someone is there to answer.

    Raises:
        Stop: the answer is no.
        ClientRefused: another request with the same key was recorded first.
        TimedOut: the log is followed, and the run has not ended in time.
    """
    sent = _send(clients, requests, key, output, yes=yes)
    try:
        sent = [_await_record(clients, *pair) for pair in zip(sent, requests, strict=True)]
        if output == NAME:
            print_names(run_id for each in sent if each.runs for run_id in each.run_ids)
        return _follow(clients, sent, following)
    finally:
        if output != NAME:
            runs = ((each, run_id) for each in sent for run_id in each.run_ids)
            print_data([_document(clients, *run, following) for run in runs], output)


def _follow(clients: Clients, sent: "Sequence[Sent]", following: Following) -> ExitStatus:
    """Follow the runs that were not refused, if asked."""
    recorded = [each for each in sent if not each.is_refused]
    accepted = [run_id for each in recorded for run_id in each.run_ids]
    refused = ExitStatus.DONE if len(recorded) == len(sent) else ExitStatus.USAGE
    if following.shows_logs and accepted:
        from trainmaster.cli.logs.follow import follow

        if len(accepted) > 1:
            talk(
                f"The log and the exit status are those of the first run alone. Of all: trainmaster wait {recorded[0].run_id}"
            )
        return follow(
            clients, accepted[0], timeout_s=following.timeout_s, requires_model=following.requires_model
        )
    if not (following.waits and accepted):
        return refused
    deadline = None if following.timeout_s is None else time.monotonic() + following.timeout_s
    with run_survives_interrupt(*accepted):
        ends = [
            _end(clients, run_id, deadline, requires_model=following.requires_model) for run_id in accepted
        ]
    return max(refused, *ends)


def _sound_requests(
    clients: Clients, files: Sequence[str], edits: "Edits", *, is_message: bool
) -> "list[Examination]":
    """All requests, without a fault among them; otherwise every fault of every file is shown, and nothing is sent."""
    from trainmaster.cli.faults import problem_lines
    from trainmaster.cli.submit.script_notes import certain_findings, certain_lines
    from trainmaster.client.errors import ClientRefused
    from trainmaster.client.submission.examination import examination_of
    from trainmaster.client.submission.send import check_names
    from trainmaster.client.submission.source import NO_FILE, RequestSource, read_source
    from trainmaster.client.submission.terms import deployed_terms

    terms = deployed_terms(clients)
    requests: list[Examination] = []
    problems: list[str] = []
    for file in dict.fromkeys(files) or [None]:
        try:
            source = RequestSource(file=NO_FILE) if file is None else read_source(file, sys.stdin.buffer)
            requests.append(examination_of(source, terms, edits, is_message=is_message))
            faults = [*problem_lines(requests[-1])]
            certain = [] if faults else certain_findings(requests[-1])
            problems += faults if edits.force else faults or certain_lines(certain)
            passed_over = (*requests[-1].forced, *(each.found for each in certain))
            requests[-1] = replace(requests[-1], forced=passed_over)
        except ClientRefused as refused:
            problems.append(str(refused))
    if problems:
        talk("\n".join(problems))
        raise Stop(ExitStatus.USAGE, "Nothing was sent.")
    check_names(requests)
    return requests


def _send(
    clients: Clients, requests: "Sequence[Examination]", key: str | None, output: str, *, yes: bool
) -> "list[Sent]":
    from trainmaster.cli.submit.script_notes import upload_script
    from trainmaster.client.submission.send import publish, started_with, upload

    says_where(clients, f"Submitting {', '.join(each.title for each in requests)}")
    sent: list[Sent] = []
    noted: set[Path] = set()
    for request in requests:
        warn(request, is_one=len(requests) == 1)
    earlier = started_with(clients, requests[0], key) if key is not None else None
    if not yes and earlier is None and _is_anyone_there():
        _ask_if_dear(requests)
    for request in requests:
        for packed in request.archives if earlier is None else ():
            upload_script(clients, packed, request.terms.team, noted)
        sent.append(earlier or (upload(clients, request) if key is None else publish(clients, request, key)))
        if output == NAME and sent[-1].runs is None:
            print_names(sent[-1].run_ids)
        talk(_outcome(sent[-1]))
    return sent


def _is_anyone_there() -> bool:
    """Whether a person can answer the question on standard error, and no `-o` is given, as programs do."""
    source = click.get_current_context().get_parameter_source("output")
    is_plain = source in (None, click.core.ParameterSource.DEFAULT)
    return is_plain and sys.stdin.isatty() and sys.stderr.isatty()


def _ask_if_dear(requests: "Sequence[Examination]") -> None:
    """Ask, if together they may cost more than the policy's bound. An unknown price counts as nothing.

    Raises:
        Stop: the answer is no, or none.
    """
    from decimal import Decimal

    from trainmaster.orchestrator.core.policy.currency import shown_bound

    policy = requests[0].terms.policy
    estimates = [estimate for request in requests if (estimate := request.bound) is not None]
    total = sum((estimate.at_most or Decimal(0) for estimate in estimates), Decimal(0))
    if policy is None or total <= (bound := policy.admission.confirm_above_usd):
        return
    currency = estimates[0].currency
    of_all = f"Together they may cost up to {shown_bound(total, currency)}. " if len(requests) > 1 else ""
    talk(f"{of_all}The policy asks above {shown_bound(bound, currency)}; --yes answers in advance")
    try:
        if click.confirm("Submit?", err=True):
            return
    except click.Abort:
        raise Stop(ExitStatus.INTERRUPTED, "\nNothing was sent.") from None
    raise Stop(ExitStatus.USAGE, "Nothing was sent.")


def _outcome(sent: "Sent") -> str:
    if sent.is_repeated:
        return f"{sent.run_id} was started before, by the same request with the same key; nothing was sent."
    return f"Sent to {sent.where}"


def warn(request: "Examination", *, is_one: bool) -> None:
    """Say what is doubtful about the request, and what it may cost; of several requests, with its name."""
    from trainmaster.cli.faults import WARNING, fault_lines
    from trainmaster.cli.submit.idle_gpus import idle_gpus
    from trainmaster.cli.submit.script_notes import script_warnings

    idle = idle_gpus(request.request, request.packed) if request.request and request.packed else None
    for line in fault_lines([*request.warnings, *([idle] if idle else [])], request.faulty, WARNING):
        talk(line)
    if request.bounds:
        talk(request.bounds if is_one else f"{request.title}: {request.bounds}")
    for line in script_warnings(request):
        talk(line)


def _document(
    clients: Clients, sent: "Sent", run_id: str, following: Following
) -> dict[str, Any]:  # Any: a JSON document
    """What was sent, and of a run that was followed its state and results, as far as they are on record."""
    from trainmaster.client.errors import NotFound
    from trainmaster.client.find import read_run
    from trainmaster.client.runs.facts import state_of
    from trainmaster.client.submission.send import sent_document
    from trainmaster.orchestrator.core.runs.record import metrics_of

    found = sent_document(sent, run_id)
    if following.waits or following.shows_logs:
        with suppress(NotFound):
            record = read_run(clients, run_id).record
            reasons = [record.failure.message] if record.failure else [*record.problems]
            found |= {
                "state": state_of(record),
                "metrics": dict(metrics_of(record)),
                "model_uri": record.model.uri if record.model else None,
                "reason": reasons[0] if reasons else None,
            }
    return found


def _await_record(clients: Clients, sent: "Sent", request: "Examination") -> "Sent":
    """What the service has made of it, or what was sent if it has not answered in time; a refusal is shown.

    Raises:
        ClientRefused: another request with the same key was recorded first.
    """
    from trainmaster.client.submission.send import (
        as_refused,
        check_same_request,
        problems_of,
        wait_until_recorded,
    )

    with run_survives_interrupt(sent.run_id):
        status = wait_until_recorded(clients, sent)
    if status is None:
        talk(f"The service has not recorded the run yet. See: trainmaster status {sent.run_id}")
        return sent
    if problems := problems_of(status):
        talk("\n".join(problems))
        return as_refused(sent, status)
    if sent.generation is None and not sent.is_repeated:
        check_same_request(clients, sent, request)
    if sent.runs is not None:
        group = f"trainmaster ls --group {sent.run_id}\n  trainmaster cancel {sent.run_id}"
        talk(f"Its {sent.runs} runs are one group:\n  {group}")
    return sent


def _end(clients: Clients, run_id: str, deadline: float | None, *, requires_model: bool) -> ExitStatus:
    """How the run ended, or why its end is unknown: all runs are waited for up to one deadline."""
    from trainmaster.client.errors import NotFound, TimedOut
    from trainmaster.client.wait import wait_for_end, wait_until_settled

    left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
    try:
        run = wait_for_end(clients, run_id, timeout_s=left_s, on_change=say_change)
    except TimedOut:
        talk(f"{run_id} has not ended in time. Keep waiting: trainmaster wait {run_id}")
        return ExitStatus.TIMED_OUT
    except NotFound as unknown:  # not recorded yet
        talk(str(unknown))
        return ExitStatus.NOT_FOUND
    return say_end(wait_until_settled(clients, run), requires_model=requires_model)
