"""The queue and the limits: who waits for what, and what counts towards the caps."""

from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING

from trainmaster.client.deployment import read_admission
from trainmaster.client.runs.admission_objects import read_starts
from trainmaster.client.runs.queue_listing import QueueListing, read_queue, runs_outside_queue
from trainmaster.client.shown.queue_lines import cap_texts, may_cost_text, outside_text, waits_text
from trainmaster.client.terminal import plural
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import ApiRoute, Ask, ConsolePage, ConsoleSubject, PageRoute

if TYPE_CHECKING:
    from trainmaster.orchestrator.core.policy.admission import Admission, Limit

ROWS_MAX = 200
"""Runs, limits, and slots of a limit on the page; the document has all."""


def queue_now(ask: Ask) -> QueueListing:
    """The queue, with limits and caps where they are known. Today's starts may be many, so they are older."""
    admission, _ = _policy(ask)
    starts = ask.source.read(
        ("starts", ask.now.astimezone(UTC).date()),
        AnswerAge.SLOW,
        lambda clients: read_starts(clients, ask.now),
    )
    return ask.source.read(
        "queue", AnswerAge.LIVE, lambda clients: read_queue(clients, ask.now, admission, starts=starts)
    )


def whole_queue(ask: Ask) -> QueueListing:
    """The queue, with the runs outside it: a listing of a thousand rows, so they are older, too."""
    return replace(queue_now(ask), outside=ask.source.read("outside", AnswerAge.SLOW, runs_outside_queue))


def _policy(ask: Ask) -> "tuple[Admission | None, str]":
    """The policy's admission rules, or why they are unknown."""
    return ask.source.read("admission", AnswerAge.RARE, read_admission)


def queue(ask: Ask) -> ConsolePage:
    """Who waits for what, and behind whom."""
    found, (admission, problem) = whole_queue(ask), _policy(ask)
    return ConsolePage(
        title="Queue and limits",
        template="queue.html",
        values={
            "found": found,
            "problem": problem,
            "waiting": [(each, waits_text(each)) for each in found.waiting[:ROWS_MAX]],
            "outside": [
                (key, title, len(rows), [(row, outside_text(row, ask.now)) for row in rows[:ROWS_MAX]])
                for key, title, rows in (
                    ("submitted", "At the training service, not started yet", found.submitted_rows),
                    ("pausing", "Pausing before a retry", found.pausing_rows),
                )
            ],
            "limits": found.limits[:ROWS_MAX],
            "slots_max": ROWS_MAX,
            "left_out": max(len(found.waiting) - ROWS_MAX, 0),
            "limits_left_out": max(len(found.limits) - ROWS_MAX, 0),
            "may_cost": may_cost_text(found) or "no price is known",
            "policy_limits": [
                _limit_text(each) for each in (admission.limits if admission else ())[:ROWS_MAX]
            ],
            "caps": cap_texts(found),
        },
        command="trainmaster queue",
    )


def _limit_text(limit: "Limit") -> str:
    """`2 jobs for each model, of runs with label team=blue`."""
    each = [
        *(["model"] if limit.per_model else []),
        *(["team"] if limit.per_team else []),
        *([f"value of the label {limit.per_label}"] if limit.per_label else []),
    ]
    scope = [f"label {key}={value}" for key, value in limit.labels.items()]
    scope += [f"model {limit.model}"] if limit.model else []
    jobs = plural(limit.jobs, "job")
    return f"{jobs} at once{''.join(f' for each {what}' for what in each)}" + (
        f", of runs with {' and '.join(scope)}" if scope else ""
    )


SUBJECT = ConsoleSubject(
    pages=[PageRoute(path="/queue", show=queue)],
    api=[
        ApiRoute(
            path="/queue",
            summary="Which runs wait and for what, the slots in use, and the starts that count towards the caps.",
            read=lambda ask: whole_queue(ask).document,
            schema="queue.v1",
        )
    ],
)
