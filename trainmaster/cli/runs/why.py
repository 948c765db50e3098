"""`trainmaster why`: every step that led to a run, or to a model."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from trainmaster.cli.table import print_facts
from trainmaster.cli.verb import JSON, TABLE, YAML, output_option, print_for_programs, takes_context
from trainmaster.client.clients import Clients
from trainmaster.client.runs.facts import candidate_of
from trainmaster.client.shown.champion_lines import champion_file_facts, data_lines, value_text
from trainmaster.client.shown.cost_lines import cost_facts
from trainmaster.client.shown.machine_lines import utilization_facts
from trainmaster.client.shown.queue_lines import place_text
from trainmaster.client.shown.run_lines import (
    best_text,
    earlier_job_facts,
    failed_trial_facts,
    failure_facts,
    fault_facts,
    job_facts,
    metric_facts,
    model_lines,
    sender_facts,
    source_text,
    verdict_facts,
    waiting_facts,
)
from trainmaster.client.shown.run_screen import state_text
from trainmaster.client.terminal import STATE, Fact
from trainmaster.client.times import span, utc_text
from trainmaster.orchestrator.core.admission.retries import followed_texts
from trainmaster.orchestrator.core.champions.champion import Reign
from trainmaster.orchestrator.core.runs.record import RefusedCandidate, RunRecord, Source, metrics_of

if TYPE_CHECKING:
    from trainmaster.client.explaining.explanation import Explanation

TRIES_SHOWN = 5


@click.command()
@click.argument("subject", metavar="RUN|MODEL")
@output_option(TABLE, JSON, YAML)
@takes_context
def why(clients: Clients, subject: str, output: str) -> int:
    """Explain a run: its event, request, image, tries, job, model and verdict; or where a model's champion comes from.

    RUN is a run's id or its last part, latest, the file that started it, or the id or key of a message. MODEL is the name of a champion.

    Exit status: 0 explained, 3 no run and no champion has this name.
    """
    from trainmaster.client.explaining.explanation import explain

    now = datetime.now(UTC)
    found = explain(clients, subject, now)
    if not print_for_programs(output, lambda: found.document):
        print_facts(why_facts(found, now, is_local=clients.context.state is not None))
    return 0


def why_facts(found: "Explanation", now: datetime, *, is_local: bool) -> Iterator[Fact]:
    """The screen of an explanation: a champion first, then its run."""
    if found.champion is not None:
        yield "champion of", [str(found.model_name)]
        yield from champion_facts(found.champion, now)
        if found.record is None:
            yield "run", [f"{found.champion.run_id}: its record is gone"]
    if found.record is not None:
        yield from run_facts(found, found.record, now, is_local=is_local)


def champion_facts(reign: Reign, now: datetime) -> Iterator[Fact]:
    """Since when the model is champion, by which value, and the identity of its files."""
    contest = reign.contest
    yield "since", [f"{utc_text(reign.since)}, {span(now - reign.since)} ago, by {reign.cause}"]
    yield "number", [f"{reign.number}, counted from the first champion of this model"]
    on = f" on {contest.evaluation or contest.dataset}" if contest.evaluation or contest.dataset else ""
    yield "value", [f"{value_text(reign)} ({contest.goal}){on}"]
    yield from champion_file_facts(reign)


def run_facts(found: "Explanation", record: RunRecord, now: datetime, *, is_local: bool) -> Iterator[Fact]:
    """Each step of the run, in the order in which it happened."""
    yield "run", [record.run_id]
    yield STATE, [state_text(record, now)]
    source, late = record.source, record.source.received_at - record.source.event_time
    yield "event", [f"{source_text(source)} at {utc_text(source.event_time)}, received {span(late)} later"]
    yield from _rule_facts(source)
    if record.request is not None and candidate_of(record) is not None:
        yield "request", [f"{record.request.model_name}, as written: {record.request.original.uri}"]
    yield from sender_facts(record)
    jobs = record.submission.abandoned_jobs
    of_jobs = {(job.candidate, job.at) for job in jobs}
    yield from _tries([one for one in record.submission.tries if (one.candidate, one.at) not in of_jobs])
    yield from earlier_job_facts(record, is_local=is_local)
    yield from waiting_facts(record, now)
    if found.place is not None:
        yield "in queue", [place_text(found.place)]
    yield from job_facts(record, now, is_local=is_local, held_by=found.held_by)
    yield from _times(record)
    yield from failed_trial_facts(record)
    yield from failure_facts(record)
    yield from _model_facts(record)
    yield from cost_facts(record, now)
    yield from utilization_facts(record)
    yield from fault_facts(record, followed_texts(record))


def _rule_facts(source: Source) -> Iterator[Fact]:
    """The rule's file, its template, and the data that had arrived."""
    if source.rule_id is None:
        return
    yield "rule", [f"{source.uri}#{source.generation}"]
    if source.template_uri is not None:
        yield "template", [f"{source.template_uri}#{source.template_generation}"]
    if data := data_lines(source.firing_values or {}):
        yield "data", data


def _tries(tries: Sequence[RefusedCandidate]) -> Iterator[Fact]:
    """Why earlier candidates did not run."""
    left_out = len(tries) - TRIES_SHOWN
    lines = [f"{each.text}, {utc_text(each.at)}: {each.outcome}" for each in tries[-TRIES_SHOWN:]]
    if lines:
        yield "tried", [*([f"{left_out} earlier ones, then:"] if left_out > 0 else []), *lines]


def _times(record: RunRecord) -> Iterator[Fact]:
    durations = record.completion.durations_s if record.completion else None
    if durations:
        words = {"until_job": "until the job", "queued": "queued", "running": "running", "total": "in all"}
        spans = [
            f"{words.get(name, name)} {span(timedelta(seconds=seconds))}"
            for name, seconds in durations.items()
        ]
        yield "times", [", ".join(spans)]


def _model_facts(record: RunRecord) -> Iterator[Fact]:
    """The best trial, the model with its metrics and hashes, and the verdict on it."""
    best = record.tuning or record.progress
    if best is not None and best.best_trial is not None:
        yield "best trial", [best_text(best.best_trial)]
    yield from metric_facts(metrics_of(record))
    model = record.model
    if model is not None:
        files = model.files
        hashes = {"manifest": model.manifest_sha256, "list of files": files.listing_sha256 if files else None}
        yield (
            "model",
            [*model_lines(model), *(f"{name}: sha256 {each}" for name, each in hashes.items() if each)],
        )
    yield from verdict_facts(record)
