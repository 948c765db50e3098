"""The challengers of a model, with the verdict on each and its metrics; and how long each champion reigned."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from trainmaster.client.errors import NotFound
from trainmaster.client.find import read_run
from trainmaster.orchestrator.core.champions.champion import Champion, Reign, Verdict

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


@dataclass(frozen=True, kw_only=True)
class Reigned:
    """A reign, and when the next one began; `until` is None for the current one."""

    reign: Reign
    until: datetime | None


def reigns_of(champion: Champion) -> list[Reigned]:
    """The reigns that the document keeps, latest first."""
    starts = [each.since for each in champion.history[1:]]
    pairs = zip(champion.history, [*starts, None], strict=True) if champion.history else ()
    return [Reigned(reign=reign, until=until) for reign, until in pairs][::-1]


@dataclass(frozen=True, kw_only=True)
class ChallengerFacts:
    """What the record of a challenger adds to its verdict."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    compared_with: str | None = None
    """The run that was champion then; None if there was none."""
    problem: str | None = None
    """Why the record cannot be read."""


def read_challenger(clients: "Clients", run_id: str) -> ChallengerFacts:
    """From the run's record, by one read. A record that is gone or damaged is a problem, not an error."""
    try:
        record = read_run(clients, run_id).record
    except NotFound as error:
        return ChallengerFacts(problem=str(error))
    verdict = record.completion.champion if record.completion else None
    return ChallengerFacts(
        metrics=record.model.metrics if record.model else {},
        compared_with=verdict.compared_with if verdict else None,
    )


def verdicts_of(champion: Champion) -> Iterator[Verdict]:
    """The verdicts that the document keeps, latest first."""
    return reversed(champion.considered)
