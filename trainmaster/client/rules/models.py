"""All models: the names under which runs train, from the index, and those that have a champion."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.client.rules.champions import FoundChampion
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.names import in_team
from trainmaster.orchestrator.core.runs.index import IndexRow

MODEL_LIST_SCHEMA = "model_list.v1"


@dataclass(frozen=True, kw_only=True)
class ListedModel:
    """A model: how many of the runs that were read are its, the newest of them, and its champion."""

    name: str
    """With the folder of its team."""
    runs: int
    latest: IndexRow | None
    """None if no run of it was read."""
    champion: FoundChampion | None

    @property
    def document(self) -> dict[str, Any]:
        """An entry of schemas/model_list.v1.schema.json."""
        latest = {} if self.latest is None else {"latest_run": encoded(self.latest)}
        champion = {} if self.champion is None else {"champion": self.champion.document}
        return {"name": self.name, "runs": self.runs, **latest, **champion}


def models_of(rows: Iterable[IndexRow], champions: Iterable[FoundChampion]) -> list[ListedModel]:
    """The models of these runs, which are newest first, and of these champions, by name."""
    runs: dict[str, list[IndexRow]] = {}
    for row in rows:
        if row.model_name is not None:
            runs.setdefault(in_team(row.team, row.model_name), []).append(row)
    by_name = {in_team(each.champion.team, each.champion.model_name): each for each in champions}
    return [
        ListedModel(
            name=name,
            runs=len(own := runs.get(name, [])),
            latest=own[0] if own else None,
            champion=by_name.get(name),
        )
        for name in sorted(runs.keys() | by_name.keys())
    ]


def model_list(models: Iterable[ListedModel], rows: Sequence[IndexRow]) -> dict[str, Any]:
    """schemas/model_list.v1.schema.json."""
    return {"schema": MODEL_LIST_SCHEMA, "models": [each.document for each in models], "scanned": len(rows)}
