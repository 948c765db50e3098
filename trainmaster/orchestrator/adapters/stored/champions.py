"""Champions over any object store: one object for each model name."""

import json
from dataclasses import dataclass

from trainmaster.orchestrator.adapters.objects import Objects
from trainmaster.orchestrator.core.champions.champion import Champion
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.errors import DocumentDamaged, ObjectGone
from trainmaster.orchestrator.core.names import champion_object, object_uri
from trainmaster.orchestrator.ports.champions import HeldChampion


@dataclass(frozen=True)
class StoredChampions:
    """See `trainmaster.orchestrator.ports.champions.Champions`."""

    objects: Objects
    bucket: str

    def find(self, model_name: str) -> HeldChampion:
        try:
            stored = self.objects.read(self.bucket, champion_object(model_name))
        except ObjectGone:
            return HeldChampion(champion=None, version=0)
        try:
            champion = decoded(Champion, json.loads(stored.content))
        except ValueError as error:
            raise DocumentDamaged(self.uri(model_name), str(error)) from error
        return HeldChampion(champion=champion, version=stored.generation)

    def replace(self, held: HeldChampion, champion: Champion) -> HeldChampion:
        content = (
            json.dumps(encoded(champion), indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        )
        current = champion.current
        shown = {"run_id": current.run_id, "model_uri": current.model_uri} if current else None
        version = self.objects.write(
            self.bucket,
            champion_object(champion.model_name),
            content,
            if_generation=held.version,
            metadata=shown,
        )
        return HeldChampion(champion=champion, version=version)

    def uri(self, model_name: str) -> str:
        return object_uri(self.bucket, champion_object(model_name))
