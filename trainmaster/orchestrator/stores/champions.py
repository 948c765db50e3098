"""The best model under each name: one object for each, and a copy of its files."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TypeVar

from trainmaster.orchestrator.core.champions.champion import Champion
from trainmaster.orchestrator.core.completion.model import METRICS_NAME
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.errors import GenerationMoved, ObjectGone, ObjectTooLarge
from trainmaster.orchestrator.core.names import champion_object, split_object_uri
from trainmaster.orchestrator.core.sizes import MAX_CHAMPION_BYTES, MAX_METRICS_BYTES
from trainmaster.orchestrator.ports.objects import Listed
from trainmaster.orchestrator.stores.store import RACES_MAX, Read, Store

_Refusal = TypeVar("_Refusal")


class Champions(Store):
    """The best model under each name."""

    def find(self, model_name: str, team: str | None = None) -> Champion | None:
        """The champion's document of that name; None before the first.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        return self._read(model_name, team).document

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
        name = champion_object(model_name, team)
        for _ in range(RACES_MAX):
            present = self._read(model_name, team)
            changed = change(present.document)
            if changed is present.document or not isinstance(changed, Champion):
                return changed
            current = changed.current
            shown = {"run_id": current.run_id, "model_uri": current.model_uri} if current else None
            with suppress(GenerationMoved):
                return self._replace(name, present, changed, metadata=shown).document
        raise GenerationMoved(self.uri(model_name, team), present.version)

    def _read(self, model_name: str, team: str | None) -> Read[Champion | None]:
        name = champion_object(model_name, team)
        return self._parse(name, partial(decoded, Champion), MAX_CHAMPION_BYTES)

    def uri(self, model_name: str, team: str | None = None) -> str:
        """The document's URI."""
        return self._uri(champion_object(model_name, team))


class ChampionCopies(Store):
    """The copies of the champions' models. Nothing here replaces or deletes one."""

    def below(self, prefix: str, files_max: int) -> Mapping[str, Listed]:
        """The objects below the prefix by name; at most `files_max`, and no more than are needed to compare them."""
        found = islice(self.objects.listing(self.bucket, prefix), files_max)
        return {entry.name: entry for entry in found}

    def holds(self, uri: str) -> bool:
        """Whether there is an object at this URI, or below it if it is a directory. Costs a listing."""
        bucket, name = split_object_uri(uri)
        return bucket == self.bucket and any(islice(self.objects.listing(bucket, name), 1))

    def scores(self, output_uri: str) -> bytes | None:
        """The metrics.json that an evaluation left in that directory; None if it is missing or too large."""
        with suppress(ObjectGone, ObjectTooLarge):
            place = split_object_uri(f"{output_uri}/{METRICS_NAME}")
            return self.objects.read(*place, max_bytes=MAX_METRICS_BYTES).content
        return None

    def describe(self, name: str) -> Listed:
        """The copy of that name.

        Raises:
            ObjectGone: it does not exist.
        """
        return self.objects.describe(self.bucket, name)

    def copy(self, source: tuple[str, str, int], name: str, token: str | None) -> Listed | str:
        """Copy an object, given by bucket, name and generation; with a token, continue.

        Raises:
            ObjectGone: that generation of the source no longer exists.
            GenerationMoved: there is an object of that name.
        """
        return self.objects.copy(source, self.bucket, name, token=token)
