"""The best model under each name: one object for each."""

from dataclasses import dataclass
from functools import partial

from trainmaster.orchestrator.core.champions.champion import Champion
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.names import champion_object
from trainmaster.orchestrator.ports.objects import json_bytes
from trainmaster.orchestrator.stores.store import Store


@dataclass(frozen=True, kw_only=True)
class HeldChampion:
    """A champion as it was read, and the version that a replacement must name. Before the first: None, 0."""

    champion: Champion | None
    version: int


class Champions(Store):
    """The best model under each name."""

    def find(self, model_name: str) -> HeldChampion:
        """The champion of that name.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        champion, version = self._parsed(champion_object(model_name), partial(decoded, Champion))
        return HeldChampion(champion=champion, version=version)

    def replace(self, held: HeldChampion, champion: Champion) -> None:
        """Write the changed document, if it is still at `held.version`.

        A write whose answer was lost counts as moved: whoever looks next finds it done.

        Raises:
            GenerationMoved: another attempt changed it first.
        """
        current = champion.current
        self.objects.write(
            self.bucket,
            champion_object(champion.model_name),
            json_bytes(encoded(champion)),
            if_generation=held.version,
            metadata={"run_id": current.run_id, "model_uri": current.model_uri} if current else None,
        )

    def uri(self, model_name: str) -> str:
        """Where the document lies."""
        return self._uri(champion_object(model_name))
