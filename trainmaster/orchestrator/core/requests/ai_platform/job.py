"""A legacy job while it is translated: its roles, and values that become something else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmaster.orchestrator.core.requests.fields import Fields
from trainmaster.orchestrator.core.requests.own_document import OwnDocument


@dataclass(frozen=True, kw_only=True)
class LegacyRole:
    """A role by our name, by the word that people use, and by its keys in the old file; the master has no count."""

    ours: str
    word: str
    type_key: str
    count_key: str = ""
    config_key: str

    @property
    def size_keys(self) -> tuple[str, ...]:
        """The keys that only the tier CUSTOM has."""
        return (self.type_key, self.count_key) if self.count_key else (self.type_key,)


MASTER = LegacyRole(ours="chief", word="master", type_key="masterType", config_key="masterConfig")
OTHERS = tuple(
    LegacyRole(
        ours=ours, word=word, type_key=f"{key}Type", count_key=f"{key}Count", config_key=f"{key}Config"
    )
    for ours, word, key in (
        ("workers", "workers", "worker"),
        ("parameter_servers", "parameter servers", "parameterServer"),
        ("evaluators", "evaluators", "evaluator"),
    )
)
ROLES = (MASTER, *OTHERS)


@dataclass(frozen=True, kw_only=True)
class LegacyJob:
    """`spec` is the trainingInput, `configs` the ReplicaConfig of each role, `own` our own document.

    `replicas` has the roles of the cluster in our own document, once `write_cluster` has written them.
    """

    spec: Fields
    configs: Mapping[LegacyRole, Fields]
    own: OwnDocument
    cluster: OwnDocument
    replicas: dict[LegacyRole, OwnDocument] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a value becomes: `ours`, or nothing. `problem` warns; of a value that `is_gone`, it refuses."""

    # Any: a value of the translated document.
    ours: Any = None
    problem: str = ""
    repair: str = ""
    is_gone: bool = False


def meanings_from(words: Mapping[str, str]) -> Mapping[str, Meaning]:
    """The table of words that are only spelled differently."""
    return {theirs: Meaning(ours=ours) for theirs, ours in words.items()}


# Any: strings or booleans.
def write_meaning(
    written: Fields, key: str, meanings: Mapping[Any, Meaning], own: OwnDocument, ours: str
) -> None:
    """Write what the key's value becomes under `ours`. A value that the table does not have is a fault."""
    value = written.get(key)
    meaning = meanings.get(value) if isinstance(value, str | bool) else None
    offered = [str(word) for word, other in meanings.items() if not other.is_gone]
    own.put(ours, meaning and meaning.ours, written.at(key))
    if meaning is None:
        if value is not None and True in meanings:
            written.refuse(key, "expected true or false")
        elif value is not None:
            written.refuse_choice(key, offered)
    elif meaning.is_gone:
        written.refuse(key, meaning.problem, among=offered, repair=meaning.repair)
    elif meaning.problem:
        written.warn(key, meaning.problem, repair=meaning.repair)
