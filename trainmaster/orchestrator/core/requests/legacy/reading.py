"""What every part of the translation does: put, refuse, warn."""

from dataclasses import dataclass

from trainmaster.orchestrator.core.documents.faults import Fault, json_path, shown
from trainmaster.orchestrator.core.requests.vertex.fields import Fields, Path, Translation


@dataclass(frozen=True, kw_only=True)
class Role:
    """A role by our name, by the word that people use, and by the keys of the legacy file."""

    ours: str
    word: str
    type_key: str
    config_key: str

    @property
    def size_keys(self) -> tuple[str, ...]:
        """The keys that say which machines there are: those that only the tier CUSTOM has."""
        return (self.type_key,)


@dataclass(frozen=True, kw_only=True)
class Counted(Role):
    """A role of as many replicas as the file says."""

    count_key: str

    @property
    def size_keys(self) -> tuple[str, ...]:
        return (self.type_key, self.count_key)


MASTER = Role(ours="chief", word="master", type_key="masterType", config_key="masterConfig")
OTHERS = (
    Counted(
        ours="workers",
        word="workers",
        type_key="workerType",
        count_key="workerCount",
        config_key="workerConfig",
    ),
    Counted(
        ours="parameter_servers",
        word="parameter servers",
        type_key="parameterServerType",
        count_key="parameterServerCount",
        config_key="parameterServerConfig",
    ),
    Counted(
        ours="evaluators",
        word="evaluators",
        type_key="evaluatorType",
        count_key="evaluatorCount",
        config_key="evaluatorConfig",
    ),
)
ROLES: tuple[Role, ...] = (MASTER, *OTHERS)


class Reading(Translation):
    """One document's translation, with what its user should know of it."""

    def __init__(self) -> None:
        super().__init__()
        self._configs: dict[str, Fields] = {}

    def _wrong(
        self, path: Path, problem: str, *, found: object = None, allowed: str = "", repair: str = ""
    ) -> None:
        told = "" if found is None else shown(found)
        self._faults.append(
            Fault(path=json_path(path), problem=problem, found=told, allowed=allowed, repair=repair)
        )

    def _warn(self, path: Path, problem: str, *, found: object = None, repair: str = "") -> None:
        told = "" if found is None else shown(found)
        self._warnings.append(Fault(path=json_path(path), problem=problem, found=told, repair=repair))
