"""The best model under each name."""

from dataclasses import dataclass
from typing import Protocol

from trainmaster.orchestrator.core.champions.champion import Champion


@dataclass(frozen=True, kw_only=True)
class HeldChampion:
    """A champion as it was read, and the version that a replacement must name. Before the first: None, 0."""

    champion: Champion | None
    version: int


class Champions(Protocol):
    """The best model under each name."""

    def find(self, model_name: str) -> HeldChampion:
        """The champion of that name.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        ...

    def replace(self, held: HeldChampion, champion: Champion) -> HeldChampion:
        """The changed document, if it is still at `held.version`.

        A write whose answer was lost counts as moved: whoever looks next finds it done.

        Raises:
            GenerationMoved: another attempt changed it first.
        """
        ...

    def uri(self, model_name: str) -> str:
        """Where the document lies."""
        ...
