"""What a request asks of the program, whichever dialect it is written in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.client.machines import shipped_machines
from trainmaster.inspect.finding import Unusable
from trainmaster.orchestrator.core.documents.document import Document, parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, without_echoes
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests.checks.tuning import iter_parameters
from trainmaster.orchestrator.core.requests.gpus import with_machines
from trainmaster.orchestrator.core.requests.own_document import Translated
from trainmaster.orchestrator.core.requests.reading import dialect_of, resolved
from trainmaster.orchestrator.core.requests.request import REQUEST_SCHEMA
from trainmaster.orchestrator.core.requests.spec import (
    Container,
    JobSpec,
    ParameterType,
    Program,
    PythonPackage,
    ReplicaEnvironment,
    Script,
    WorkerPool,
    spec_from,
)
from trainmaster.resources import ROOT

_SAMPLE_NAMES = {
    "project": "my-project",
    "region": "us-central1",
    "inbox_bucket": "my-project-inbox",
    "models_bucket": "my-project-models",
}
"""For the placeholders of a deployment: the inspection knows none."""


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
        return self.spec.tuning is not None

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(metric.id for metric in self.spec.tuning.metrics) if self.spec.tuning else ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every parameter of the study, conditional ones too."""
        tuning = self.spec.tuning.document if self.spec.tuning else {}
        return tuple(_parameter(name, parameter) for _, name, parameter in iter_parameters(tuning))

    @property
    def program(self) -> Program:
        """What the chief runs."""
        return self.spec.cluster.chief.program

    @property
    def command(self) -> tuple[str, ...]:
        match self.program:
            case Container(command=command):
                return command
            case Script(file=file):
                return ("python", file)
            case PythonPackage():
                return ()

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

    def _replicas(self, pool: WorkerPool | None) -> int:
        return pool.replicas if pool is not None and _what(pool.program) == _what(self.program) else 0


def read_request(path: Path) -> Request:
    """The request in a YAML or JSON file.

    Raises:
        Unusable: the file cannot be read or is not a request, with every fault of its text and form. Only the
            orchestrator decides whether a deployment accepts it.
    """
    try:
        read = parse_document(path.read_bytes(), as_json=path.suffix.lower() == ".json")
    except OSError as error:
        raise Unusable(f"--request {str(path)!r} cannot be read: {error}.") from error
    if isinstance(read.value, dict):
        written = resolved(read.value, _SAMPLE_NAMES)
        meant = dialect_of(written).in_own(written, model_name_from(path.stem))
        meant = with_machines(meant, shipped_machines())
        faults = _faults(read, meant)
        if not faults:
            return Request(path=str(path), spec=spec_from(meant.document))
    else:
        no_mapping = Fault(path="$", problem="a request must be a mapping", value=read.value)
        faults = [*read.faults] or [no_mapping]
    raise Unusable(*(f"--request {str(path)!r}: {fault}" for fault in faults))


def _faults(read: Document, meant: Translated) -> list[Fault]:
    schema = json.loads((ROOT / "schemas" / f"{REQUEST_SCHEMA}.schema.json").read_bytes())
    spelled = {meant.own_path(at): text for at, text in read.spelled.items()}
    of_schema = (fault.moved(meant.written_path) for fault in schema_faults(schema, meant.document, spelled))
    # Of a place with a fault of its text or form, the schema's is an echo.
    faults = {fault.path: fault for fault in (*of_schema, *meant.faults, *read.faults)}
    return sorted(without_echoes(faults.values()))


def _what(program: Program) -> str:
    """What the program is: packages run alike in executors for CPUs and for GPUs."""
    return program.module if isinstance(program, PythonPackage) else program.image


# Any: the schema has validated the types.
def _parameter(name: str, parameter: Mapping[str, Any]) -> Parameter:
    kind = ParameterType(parameter["type"])
    first = parameter["values"][0] if "values" in parameter else parameter.get("min", 0)
    match kind:
        case ParameterType.DISCRETE | ParameterType.DOUBLE:
            sample = str(float(first))
        case ParameterType.INTEGER:
            sample = str(int(first))
        case ParameterType.CATEGORICAL:
            sample = str(first)
    return Parameter(name=name, type=kind, sample=sample)
