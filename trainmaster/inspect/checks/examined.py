"""The input of the checks, and queries that several of them share."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from trainmaster.inspect.finding import Finding, Level
from trainmaster.inspect.request import Request
from trainmaster.inspect.source.module import Module, last_name
from trainmaster.inspect.source.order import Step, steps_of
from trainmaster.inspect.source.program import Program
from trainmaster.inspect.surroundings import Surroundings

MULTI_WORKER = (
    "tensorflow.distribute.MultiWorkerMirroredStrategy",
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy",
)
PARAMETER_SERVER = (
    "tensorflow.distribute.ParameterServerStrategy",
    "tensorflow.distribute.experimental.ParameterServerStrategy",
    "tensorflow.distribute.ParameterServerStrategyV2",
)

FRAMEWORKS = {
    "lightning": {"lightning", "pytorch_lightning"},
    "torch": {"torch"},
    "keras": {"tensorflow", "keras", "tf_keras"},
}
"""Packages by framework; the first that is imported counts."""

Call = tuple[Module, ast.Call]


@dataclass(frozen=True, kw_only=True, eq=False)
class Examined:
    """`request` is None if none was given; the number of replicas is then unknown."""

    program: Program
    surroundings: Surroundings
    request: Request | None = None

    @cached_property
    def steps(self) -> list[Step]:
        return steps_of(self.program)

    @cached_property
    def multi_worker(self) -> list[Call]:
        """Where MultiWorkerMirroredStrategy is built."""
        return self.program.calls_of(MULTI_WORKER)

    @cached_property
    def parameter_server(self) -> list[Call]:
        return self.program.calls_of(PARAMETER_SERVER)

    @property
    def is_alone(self) -> bool:
        """Whether the request asks for a single replica."""
        return self.request is not None and not (self.request.workers or self.request.parameter_servers)

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that the image and the request set for every replica; the request's take precedence."""
        return {
            **self.surroundings.variables,
            **(self.request.program.env if self.request is not None else {}),
        }

    @property
    def framework(self) -> str | None:
        """The framework that the program trains with, by its imports: lightning, torch or keras."""
        packages = {name.partition(".")[0] for name in self.program.imported}
        found = (name for name, those in FRAMEWORKS.items() if packages & those)
        return next(found, None)

    def harm(self) -> Level:
        """The severity of a fault that affects only clusters."""
        return Level.WARNING if self.is_alone else Level.ERROR

    def on_models(self, *verbs: str) -> Iterator[Call]:
        """Calls such as `model.fit`, of objects that are called models or that are compiled and fitted."""
        for module, call in self.program.calls():
            if isinstance(call.func, ast.Attribute) and call.func.attr in verbs:
                receiver = call.func.value
                if module.dotted(receiver) is None and self._is_model(module, receiver):
                    yield module, call

    def _is_model(self, module: Module, receiver: ast.expr) -> bool:
        name = last_name(receiver)
        return "model" in name.lower() or (module.name, name) in self._compiled

    @cached_property
    def _compiled(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (module.name, last_name(call.func.value))
            for module, call in self.program.calls()
            if isinstance(call.func, ast.Attribute)
            and call.func.attr == "compile"
            and module.dotted(call.func.value) is None
            and last_name(call.func.value)
        )


Check = Iterator[Finding]


def beyond(program: Program) -> str:
    """Why something may exist although the source does not show it."""
    if program.unread:
        return f"{program.unread[0]} is imported but is not in the tree"
    return f"{program.unparsed[0][0]} cannot be read"
