"""What the replicas of a pool run, as the API spells it, said in our own way: a container or Python packages."""

from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, json_path
from trainmaster.orchestrator.core.requests.submission import REPLICA_ENVIRONMENT
from trainmaster.orchestrator.core.requests.vertex.fields import Fields, Path, Translation

_PACKAGE_KEYS = {"executorImageUri": "executor_image", "packageUris": "uris", "pythonModule": "module"}
_PROGRAMS = "containerSpec or pythonPackageSpec"


class ProgramTranslation(Translation):
    """The programs of the pools. Each pool names its own, so that no role takes anything from another."""

    def __init__(self) -> None:
        super().__init__()
        self._environments: list[tuple[Path, object]] = []

    def _program(self, mine: dict[str, Any], here: Path, pool: Fields) -> None:
        container, package = self._fields(pool, "containerSpec"), self._fields(pool, "pythonPackageSpec")
        there = pool.present(("containerSpec", "pythonPackageSpec"))
        if len(there) > 1:
            problem = "a pool runs a container or Python packages, not both"
            self._refuse(pool.path, problem, there, allowed=_PROGRAMS, repair="take one of the two out")
        if pool.has("containerSpec"):
            self._container(mine, here, container)
        elif pool.has("pythonPackageSpec"):
            self._package(mine, here, package)
        else:
            self._places[json_path((*here, "image"))] = json_path(pool.path)
            problem = "the pool says nothing to run"
            self._faults.append(Fault(path=json_path(pool.path), problem=problem, allowed=_PROGRAMS))

    def _container(self, mine: dict[str, Any], here: Path, container: Fields) -> None:
        image = container.get("imageUri")
        if image is None and not container.kind_fault:
            # Without an image of its own the role would be given the chief's.
            path = json_path(container.at("imageUri"))
            self._faults.append(Fault(path=path, problem="missing", allowed="a container image"))
        self._put(mine, here, "image", image, container.at("imageUri"))
        self._put(mine, here, "command", container.get("command"), container.at("command"))
        self._arguments(mine, here, container)
        self._faults += container.unknown()

    def _package(self, mine: dict[str, Any], here: Path, package: Fields) -> None:
        inner: dict[str, Any] = {}
        self._put(mine, here, "python_package", inner, package.path)
        for theirs, ours in _PACKAGE_KEYS.items():
            path = (*here, "python_package")
            self._put(inner, path, ours, package.get(theirs), package.at(theirs))
        self._arguments(mine, here, package)
        self._faults += package.unknown()

    def _arguments(self, mine: dict[str, Any], here: Path, program: Fields) -> None:
        self._put(mine, here, "args", program.get("args"), program.at("args"))
        env: dict[str, Any] = {}
        self._places[json_path((*here, "env"))] = json_path(program.at("env"))
        for index, value in enumerate(self._list(program, "env")):
            path = (*program.at("env"), index)
            if isinstance(value, Mapping):
                self._variable(env, (*here, "env"), Fields(value, path))
            else:
                self._refuse(path, "a mapping of name and value is wanted here", value)
        if env:
            mine["env"] = env

    def _variable(self, env: dict[str, Any], here: Path, entry: Fields) -> None:
        name, value = entry.get("name"), entry.get("value")
        if name == REPLICA_ENVIRONMENT:
            # Every other name of ours stays for the policy to refuse.
            self._environments.append((entry.at("value"), value))
        elif not isinstance(name, str):
            self._refuse(entry.at("name"), "a name is wanted here", name)
        elif name in env:
            self._refuse(
                entry.at("name"), "the variable stands here twice", name, repair="keep one of the two"
            )
        else:
            # Of a value that is a string nothing can be wrong but the name.
            wrong = "name" if isinstance(value, str) else "value"
            self._put(env, here, name, "" if value is None else value, entry.at(wrong))
        self._faults += entry.unknown()
