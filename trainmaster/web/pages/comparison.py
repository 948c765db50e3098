"""Several runs side by side: what was asked of each, how it ended, and where they differ. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from trainmaster.client.times import span
from trainmaster.orchestrator.core.documents.faults import cut
from trainmaster.orchestrator.core.policy.currency import shown_bound, shown_money
from trainmaster.orchestrator.core.runs.index import named_args
from trainmaster.orchestrator.core.runs.record import RunRecord, metrics_of

RUNS_MIN, RUNS_MAX = 2, 8
ROWS_MAX = 300
"""Of a section; the records have all."""
VALUE_MAX_CHARS = 300
SECTIONS = ("Run", "Request", "Tuning", "Labels", "Metrics", "Durations", "Cost")
_OF_REQUEST = {"labels": "Labels", "tuning": "Tuning"}
"""The keys of a request that have a section each."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One value in each run, in the order of the runs; empty where a run has none."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


@dataclass(frozen=True, kw_only=True)
class Section:
    """A group of values; `left_out` says how many more there are."""

    title: str
    rows: tuple[Compared, ...]
    left_out: int = 0


def compare(records: Sequence[RunRecord]) -> list[Section]:
    """The sections in which any of the runs has a value, with names in the order in which the runs have them."""
    facts = [_facts(record) for record in records]
    found = []
    for title in SECTIONS:
        names = list(dict.fromkeys(name for fact in facts for name in fact[title]))
        rows = (
            Compared(name=name, values=tuple(each[title].get(name, "") for each in facts))
            for name in names[:ROWS_MAX]
        )
        if names:
            found.append(Section(title=title, rows=tuple(rows), left_out=max(len(names) - ROWS_MAX, 0)))
    return found


def _facts(record: RunRecord) -> Mapping[str, dict[str, str]]:
    """The run's values by section and name."""
    facts: dict[str, dict[str, str]] = {title: {} for title in SECTIONS}
    document = record.request.document if record.request is not None else {}
    for key, value in document.items():
        facts[_OF_REQUEST.get(key, "Request")] |= dict(_flat_values(value, "" if key == "labels" else key))
    facts["Run"] |= dict(_run(record))
    facts["Tuning"] |= dict(_best_trial(record))
    facts["Metrics"] |= {name: _digits(value) for name, value in sorted(metrics_of(record).items())}
    facts["Durations"] |= dict(_durations(record))
    facts["Cost"] |= dict(_cost(record))
    return {
        title: {name: cut(value, VALUE_MAX_CHARS) for name, value in each.items()}
        for title, each in facts.items()
    }


def _digits(value: float) -> str:
    """More digits than elsewhere: runs that are compared may differ by little."""
    return f"{value:.6g}"


def _flat_values(value: object, path: str) -> Iterator[tuple[str, str]]:
    """The values in a part of the request, by path; of a list of arguments, by the argument's name."""
    match value:
        case Mapping():
            for key, each in value.items():
                yield from _flat_values(each, f"{path}.{key}" if path else str(key))
        case list() | tuple() if path.endswith("args") and all(isinstance(each, str) for each in value):
            for name, text in named_args([str(each) for each in value]).items():
                yield f"{path} {name}", text
        case list() | tuple() if any(isinstance(each, Mapping) for each in value):
            for index, each in enumerate(value):
                yield from _flat_values(each, f"{path}[{index}]")
        case list() | tuple():
            yield path, ", ".join(map(str, value))
        case bool():
            yield path, str(value).lower()
        case _:
            yield path, str(value)


def _run(record: RunRecord) -> Iterator[tuple[str, str]]:
    yield "state", record.state
    if record.failure is not None:
        yield "failure", record.failure.message
    elif record.problems:
        yield "problem", record.problems[0]
    yield "recorded", f"{record.history[0].at:%Y-%m-%d %H:%M:%S} UTC"
    yield "source", record.source.uri or record.source.message_id or record.source.kind
    if record.completion is not None and record.completion.champion is not None:
        yield "champion", record.completion.champion.reason


def _best_trial(record: RunRecord) -> Iterator[tuple[str, str]]:
    reached = record.tuning or record.progress
    best = reached.best_trial if reached is not None else None
    if best is not None:
        yield "best trial", best.id
        yield f"best {best.metric}", _digits(best.value)
        for name, value in sorted(best.parameters.items()):
            yield f"best {name}", _digits(value) if isinstance(value, float) else str(value)


def _durations(record: RunRecord) -> Iterator[tuple[str, str]]:
    durations = record.completion.durations_s if record.completion is not None else None
    for name, seconds in (durations or {}).items():
        yield name.replace("_", " "), span(timedelta(seconds=seconds))


def _cost(record: RunRecord) -> Iterator[tuple[str, str]]:
    estimate = record.request.estimate if record.request is not None else None
    if estimate is not None and estimate.per_hour is not None:
        yield "estimated per hour", shown_money(estimate.per_hour, estimate.currency)
    if estimate is not None and estimate.at_most is not None:
        yield "estimated at most", shown_bound(estimate.at_most, estimate.currency)
    cost = record.completion.cost if record.completion is not None else None
    if cost is not None and cost.total is not None:
        yield "cost", shown_money(cost.total, cost.currency)
