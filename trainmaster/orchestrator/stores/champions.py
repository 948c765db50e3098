"""The best model under each name: one object for each."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from trainmaster.orchestrator.core.champions.champion import Champion
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.errors import GenerationMoved
from trainmaster.orchestrator.core.names import champion_object
from trainmaster.orchestrator.core.sizes import MAX_CHAMPION_BYTES
from trainmaster.orchestrator.ports.objects import json_bytes
from trainmaster.orchestrator.stores.store import RACES_MAX, Store

_Refusal = TypeVar("_Refusal")


class Champions(Store):
    """The best model under each name."""

    def find(self, model_name: str, team: str | None = None) -> Champion | None:
        """The champion's document of that name; None before the first.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        return self._read(model_name, team)[0]

    def update(
        self,
        model_name: str,
        change: Callable[[Champion | None], Champion | _Refusal],
        team: str | None = None,
    ) -> Champion | _Refusal:
        """The document after `change`, which is applied again to each newer one; or the refusal that `change` returned.

        If `change` returns its argument, nothing is written. A write whose response was lost counts as another
        attempt's, so `change` must recognize that it is done.

        Raises:
            DocumentDamaged: the object holds something else.
            GenerationMoved: the document kept changing.
        """
        for _ in range(RACES_MAX):
            champion, generation = self._read(model_name, team)
            changed = change(champion)
            if changed is champion or not isinstance(changed, Champion):
                return changed
            with suppress(GenerationMoved):
                self._write(changed, generation)
                return changed
        raise GenerationMoved(self.uri(model_name, team), generation)

    def _read(self, model_name: str, team: str | None) -> tuple[Champion | None, int]:
        name = champion_object(model_name, team)
        return self._parsed(name, partial(decoded, Champion), MAX_CHAMPION_BYTES)

    def _write(self, champion: Champion, generation: int) -> None:
        current = champion.current
        self.objects.write(
            self.bucket,
            champion_object(champion.model_name, champion.team),
            json_bytes(encoded(champion)),
            if_generation=generation,
            metadata={"run_id": current.run_id, "model_uri": current.model_uri} if current else None,
        )

    def uri(self, model_name: str, team: str | None = None) -> str:
        """The document's URI."""
        return self._uri(champion_object(model_name, team))
