"""A legacy job while it is translated: its roles, what is read and what is written."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.orchestrator.core.requests.translation.fields import Fields
from trainmaster.orchestrator.core.requests.translation.own_document import OwnDocument


@dataclass(frozen=True, kw_only=True)
class Role:
    """A role by our name, by the word that people use, and by the prefix of its keys in the legacy file."""

    ours: str
    word: str
    prefix: str

    @property
    def type_key(self) -> str:
        return f"{self.prefix}Type"

    @property
    def count_key(self) -> str:
        return f"{self.prefix}Count"

    @property
    def config_key(self) -> str:
        return f"{self.prefix}Config"

    @property
    def size_keys(self) -> tuple[str, ...]:
        """The keys that say which machines there are: those that only the tier CUSTOM has."""
        return (self.type_key,) if self is MASTER else (self.type_key, self.count_key)


MASTER = Role(ours="chief", word="master", prefix="master")
OTHERS = (
    Role(ours="workers", word="workers", prefix="worker"),
    Role(ours="parameter_servers", word="parameter servers", prefix="parameterServer"),
    Role(ours="evaluators", word="evaluators", prefix="evaluator"),
)
ROLES = (MASTER, *OTHERS)


@dataclass(frozen=True, kw_only=True)
class Job:
    """`spec` is the trainingInput, `configs` the ReplicaConfig of each role by our name, `own` our own document."""

    spec: Fields
    configs: Mapping[str, Fields]
    own: OwnDocument
    cluster: OwnDocument

    def config(self, role: Role) -> Fields:
        return self.configs[role.ours]

    def has(self, role: Role) -> bool:
        """Whether our own document has replicas of the role."""
        return role.ours in self.cluster.content

    def part(self, theirs: str, ours: str) -> tuple[Fields, OwnDocument] | None:
        """The value of `spec` under `theirs`, and the translated document's mapping for it; None if it has none."""
        written = self.spec.fields(theirs)
        return (written, self.own.inner(ours, written.path)) if self.spec.has(theirs) else None

    def replicas(self, role: Role) -> OwnDocument:
        """The role in our own document."""
        return OwnDocument(self.own.translation, ("cluster", role.ours), self.cluster.content[role.ours])
