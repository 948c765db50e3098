"""A notice in one line: what happened to which model, its metrics beside the champion's, its cost, link and command."""

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainmaster.orchestrator.core.documents.faults import cut
from trainmaster.orchestrator.core.job_names import console_uri
from trainmaster.orchestrator.core.notices.notice import (
    CAP_REACHED,
    CHAMPION_PROMOTED,
    CHAMPION_ROLLED_BACK,
    RULE_QUARANTINED,
    TEST,
    Notice,
)
from trainmaster.orchestrator.core.notices.routing import state_of_notice
from trainmaster.orchestrator.core.policy.currency import shown_money
from trainmaster.orchestrator.core.runs.end import CHAMPION, CHAMPION_RUN
from trainmaster.orchestrator.core.runs.record import RunRecord, measured_metrics

METRICS_MAX = 4
PART_MAX_CHARS, TEXT_MAX_CHARS = 300, 650
"""Of a reason or a name, and of the text. With link and command, the line fits a label of Cloud Monitoring, 1,024
characters (https://cloud.google.com/monitoring/quotas), and escaped a message of Slack, 4,000."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """`text` says what happened; `link` is the job's page in the console, `command` shows more. All are one line."""

    text: str
    command: str
    link: str | None = None

    @property
    def line(self) -> str:
        return " · ".join(part for part in (self.text, self.link, self.command) if part)


def other_run(notice: Notice) -> str | None:
    """The run that was champion when the notice's run ended or was promoted."""
    verdict = notice.data.get("champion")
    compared = verdict.get("compared_with") if isinstance(verdict, Mapping) else notice.data.get("replaces")
    return compared if isinstance(compared, str) and compared != notice.data.get("run_id") else None


def message_of(notice: Notice, record: RunRecord | None, champion: RunRecord | None) -> Message:
    """The message. `record` is the notice's run's, `champion` that of `other_run`; None: not known any more."""
    parts = [_what(notice, record), *_metrics(record, champion), *_verdict(notice), *_cost(record)]
    job = record.job if record and notice.type != CAP_REACHED else None
    return Message(
        text=cut(", ".join(parts), TEXT_MAX_CHARS),
        link=console_uri(job.name) if job else None,
        command=shlex.join(["trainmaster", *_command(notice)]),
    )


_TEXTS = {
    TEST: "a test notice for {receiver}",
    CAP_REACHED: "the cap {window} is reached: {reason}",
    RULE_QUARANTINED: "the rule {rule_id} of {model_name} is in quarantine: {reason}",
    CHAMPION_PROMOTED: "{model_name}: {run_id} is the new champion",
    CHAMPION_ROLLED_BACK: "{model_name}: {run_id} is champion again",
}


def _what(notice: Notice, record: RunRecord | None) -> str:
    data = defaultdict(str, {name: _text(value) for name, value in notice.data.items()})
    if notice.type in _TEXTS:
        return _TEXTS[notice.type].format_map(data)
    error = notice.data.get("error")
    why = data["reason"] or (_text(error.get("message")) if isinstance(error, Mapping) else _refusal(record))
    state = state_of_notice(notice).replace("_", " ")
    return f"{data['model_name'] or 'a request'}: {data['run_id']} {state}{why and f': {why}'}"


def _refusal(record: RunRecord | None) -> str:
    """The first fault of a run that was rejected, without what was found there, and how many others there are."""
    first, *others = (record.rejection.faults if record and record.rejection else None) or ({},)
    more = f" (and {len(others)} more)" if others else ""
    return f"{_text(first['path'])}: {_text(first['problem'])}{more}" if first else ""


def _metrics(record: RunRecord | None, champion: RunRecord | None) -> Iterator[str]:
    """Where a job of another account scores the models, its numbers: the run's own do not count."""
    if record is None or record.model is None:
        return
    before = _before(record, champion) if champion else {}
    for name, value in sorted(measured_metrics(record).items())[:METRICS_MAX]:
        beside = f" (champion {before[name]:.4g})" if name in before else ""
        yield f"{_text(name)} {value:.4g}{beside}"


def _before(record: RunRecord, champion: RunRecord) -> Mapping[str, float]:
    """The champion's metrics: as the run's evaluation measured them on its data, if it scored this champion."""
    evaluation = record.evaluation
    if evaluation and evaluation.scores and evaluation.inputs.get(CHAMPION_RUN) == champion.run_id:
        return evaluation.scores.get(CHAMPION, {})
    return measured_metrics(champion)


def _verdict(notice: Notice) -> Iterator[str]:
    verdict = notice.data.get("champion")
    if isinstance(verdict, Mapping):
        waits = "waits for approval" if verdict.get("approve_by") else "not champion"
        yield "the new champion" if verdict.get("promoted") is True else waits


def _cost(record: RunRecord | None) -> Iterator[str]:
    cost = record.completion.cost if record and record.completion else None
    if cost is not None and cost.total is not None:
        yield f"cost {shown_money(cost.total, cost.currency)}"


def _command(notice: Notice) -> list[str]:
    if notice.type == RULE_QUARANTINED:
        return ["rules", "show", _text(notice.data.get("rule_id"))]
    return ["notices", "ls"] if notice.type == TEST else ["why", _text(notice.data.get("run_id"))]


def _text(value: object) -> str:
    """A text of the notice on one line, short."""
    text = value if isinstance(value, str) else ""
    line = " ".join(
        "".join(char if char.isprintable() else " " for char in text[: 4 * PART_MAX_CHARS]).split()
    )
    return cut(line, PART_MAX_CHARS)
