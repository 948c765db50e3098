"""What a request asks of the program, whichever dialect it is written in."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster.inspect.finding import Unusable
from trainmaster.orchestrator.core.documents.document import Document, document_in
from trainmaster.orchestrator.core.documents.faults import Fault, fault_at
from trainmaster.orchestrator.core.documents.translation import Translated
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests import tuning
from trainmaster.orchestrator.core.requests.dialects import dialect_of
from trainmaster.orchestrator.core.requests.request import REQUEST_SCHEMA
from trainmaster.orchestrator.core.requests.spec import (
    JobSpec,
    Program,
    PythonPackage,
    ReplicaEnvironment,
    WorkerPool,
    spec_from,
)
from trainmaster.orchestrator.core.requests.tuning import ParameterType, Tuning
from trainmaster.resources import ROOT


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """`sample` is one legal value as a trial gets it on its command line; discrete values come as `64.0`."""

    name: str
    type: ParameterType
    sample: str


@dataclass(frozen=True, kw_only=True)
class Request:
    """The job of the request at `path`, by what a program must fit."""

    path: str
    spec: JobSpec

    @property
    def is_tuning(self) -> bool:
        return isinstance(self.spec.work, Tuning)

    @property
    def metrics(self) -> tuple[str, ...]:
        work = self.spec.work
        return tuple(metric.id for metric in work.metrics) if isinstance(work, Tuning) else ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every parameter of the study, conditional ones too."""
        work = self.spec.work
        return tuple(map(_parameter, _flat(work.parameters))) if isinstance(work, Tuning) else ()

    @property
    def program(self) -> Program:
        """What the chief runs."""
        return self.spec.cluster.chief.program

    @property
    def command(self) -> tuple[str, ...]:
        return () if isinstance(self.program, PythonPackage) else self.program.command

    @property
    def module(self) -> str | None:
        return self.program.module if isinstance(self.program, PythonPackage) else None

    @property
    def workers(self) -> int:
        """How many workers run the chief's program; so with the other roles."""
        return self._replicas(self.spec.cluster.workers)

    @property
    def parameter_servers(self) -> int:
        return self._replicas(self.spec.cluster.parameter_servers)

    @property
    def evaluators(self) -> int:
        return self._replicas(self.spec.cluster.evaluators)

    @property
    def says_master(self) -> bool:
        """Whether TF_CONFIG calls the chief `master`."""
        return self.spec.cluster.replica_environment is ReplicaEnvironment.AI_PLATFORM

    @property
    def restarts_together(self) -> bool:
        """Whether all replicas restart when one does."""
        return self.spec.scheduling.restart_on_worker_restart

    def _replicas(self, pool: WorkerPool | None) -> int:
        return pool.replicas if pool is not None and _what(pool.program) == _what(self.program) else 0


def request_in(path: Path) -> Request:
    """The request in a YAML or JSON file.

    Raises:
        Unusable: the file cannot be read or is no request, with every fault of its text and form. Whether a
            deployment takes it is the orchestrator's to say.
    """
    try:
        read = document_in(path.read_bytes(), as_json=path.suffix.lower() == ".json")
    except OSError as error:
        raise Unusable(f"--request {str(path)!r} cannot be read: {error}.") from error
    if isinstance(read.value, dict):
        meant = dialect_of(read.value).in_own(read.value, model_name_from(path.stem))
        faults = _faults(read, meant)
        if not faults:
            return Request(path=str(path), spec=spec_from(meant.document))
    else:
        no_mapping = fault_at((), "a request is a mapping of keys to values", found=read.value)
        faults = [*read.faults] or [no_mapping]
    raise Unusable(*(f"--request {str(path)!r}: {fault}" for fault in faults))


def _faults(read: Document, meant: Translated) -> list[Fault]:
    schema = json.loads((ROOT / "schemas" / f"{REQUEST_SCHEMA}.schema.json").read_bytes())
    spelled = {meant.own_path(at): text for at, text in read.spelled.items()}
    of_schema = (
        replace(fault, path=meant.written_path(fault.path))
        for fault in schema_faults(schema, meant.document, spelled)
    )
    # Of a place with a fault of its text or form, the schema's is an echo.
    return sorted({fault.path: fault for fault in (*of_schema, *meant.faults, *read.faults)}.values())


def _what(program: Program) -> str:
    """What the program is: packages run alike in executors for CPUs and for GPUs."""
    return program.module if isinstance(program, PythonPackage) else program.image


def _flat(parameters: Iterable[tuning.Parameter]) -> Iterator[tuning.Parameter]:
    for parameter in parameters:
        yield parameter
        for condition in parameter.conditional:
            yield from _flat(condition.parameters)


def _parameter(parameter: tuning.Parameter) -> Parameter:
    first = parameter.values[0] if parameter.values else parameter.min
    match parameter.type:
        case ParameterType.DISCRETE | ParameterType.DOUBLE:
            sample = str(float(first or 0))
        case ParameterType.INTEGER:
            sample = str(int(first or 0))
        case ParameterType.CATEGORICAL:
            sample = str(first)
    return Parameter(name=parameter.name, type=parameter.type, sample=sample)
