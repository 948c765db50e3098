"""The rules, what each remembers, and what their users are told."""

from dataclasses import dataclass
from typing import Protocol

from trainmaster.orchestrator.core.retraining.rules.book import Book
from trainmaster.orchestrator.core.retraining.state import RuleState
from trainmaster.orchestrator.core.retraining.status import RuleStatus


@dataclass(frozen=True, kw_only=True)
class HeldBook:
    """The rule book as it was read, and the version that a replacement must name."""

    book: Book
    version: int


@dataclass(frozen=True, kw_only=True)
class HeldState:
    """A rule's state as it was read, and the version that a replacement must name. Before the first: None, 0."""

    state: RuleState | None
    version: int


class RuleBook(Protocol):
    """Every accepted rule, in one object."""

    def read(self) -> HeldBook:
        """The book; empty before the first rule.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        ...

    def replace(self, held: HeldBook, book: Book) -> HeldBook:
        """The changed book, if it is still at `held.version`.

        Raises:
            GenerationMoved: another attempt changed it first.
        """
        ...


class RuleStates(Protocol):
    """What each rule remembers."""

    def read(self, rule_id: str) -> HeldState:
        """The state of a rule.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        ...

    def replace(self, held: HeldState, state: RuleState) -> HeldState:
        """The changed state, if it is still at `held.version`.

        A write whose answer was lost counts as moved: what was decided is on record, and whoever looks next
        finds it.

        Raises:
            GenerationMoved: another attempt changed it first.
        """
        ...


class RuleStatuses(Protocol):
    """What users are told of their rules."""

    def find(self, dropped_name: str) -> RuleStatus | None:
        """What is told of the drop of this name; None where nothing is, or nothing that can be read."""
        ...

    def tell(self, status: RuleStatus) -> None:
        """Write it, unless something of a newer generation, or later, is written there. Safe to repeat."""
        ...
