"""The demands that a request makes of the program, whichever dialect it is written in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainmaster.client.machines import shipped_machines
from trainmaster.inspect.finding import UnusableProgram
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, without_echoes
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests import reading
from trainmaster.orchestrator.core.requests.checks.tuning import iter_parameters
from trainmaster.orchestrator.core.requests.gpus import with_machines
from trainmaster.orchestrator.core.requests.placeholders import DEPLOYMENT
from trainmaster.orchestrator.core.requests.request import REQUEST_SCHEMA
from trainmaster.orchestrator.core.requests.spec import (
    Container,
    JobSpec,
    ParameterType,
    Program,
    PythonPackage,
    ReplicaEnvironment,
    Script,
    spec_from,
)
from trainmaster.resources import ROOT

_NAMES = {**dict.fromkeys(DEPLOYMENT, "my-project"), "region": "us-central1"}
"""For the placeholders of a deployment: the inspection knows none."""


@dataclass(frozen=True, kw_only=True)
class ProgramParameter:
    """`samples` are two legal values as trials get them on their command lines; discrete ones come as `64.0`.

    The second is another than the first, unless the parameter has only one, and never much larger: a study may vary how
    long a trial trains.
    """

    name: str
    type: ParameterType
    samples: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class ProgramRequest:
    """The job of the request at `path`, by what a program must fit."""

    path: str
    spec: JobSpec

    @property
    def metrics(self) -> tuple[str, ...]:
        """Of the study; empty without one."""
        return tuple(metric.id for metric in self.spec.tuning.metrics) if self.spec.tuning else ()

    @property
    def parameters(self) -> tuple[ProgramParameter, ...]:
        """Every parameter of the study, conditional ones too."""
        tuning = self.spec.tuning.document if self.spec.tuning else {}
        return tuple(_parameter(name, parameter) for _, name, parameter in iter_parameters(tuning))

    @property
    def program(self) -> Program:
        """What the chief runs."""
        return self.spec.cluster.chief.program

    @property
    def command(self) -> tuple[str, ...]:
        """The words that start the program, without its `args`; empty if the image says them."""
        match self.program:
            case Container(command=command):
                return command
            case Script(words=words):
                return ("python", *words)
            case PythonPackage(module=module):
                return ("python", "-m", module)

    @property
    def workers(self) -> int:
        """How many workers run the chief's program."""
        pool = self.spec.cluster.workers
        return pool.replicas if pool is not None and _identity(pool.program) == _identity(self.program) else 0

    @property
    def says_master(self) -> bool:
        """Whether TF_CONFIG calls the chief `master`."""
        return self.spec.cluster.replica_environment is ReplicaEnvironment.AI_PLATFORM


def read_request(path: Path) -> ProgramRequest:
    """The request in a YAML or JSON file.

    Raises:
        UnusableProgram: the file cannot be read or is not a request, with every fault of its text and form. Only the
            orchestrator decides whether a deployment accepts it.
    """
    try:
        read = parse_document(path.read_bytes(), as_json=path.suffix.lower() == ".json")
    except OSError as error:
        raise UnusableProgram(f"--request {str(path)!r} cannot be read: {error}.") from error
    if isinstance(read.value, dict):
        written = reading.with_deployment_values(read.value, _NAMES)
        dialect = reading.dialect_of(written)
        meant = dialect.in_own(written, model_name_from(path.stem))
        if dialect is reading.OWN:
            meant = replace(meant, document={"cluster": reading.SMALL_CLUSTER, **meant.document})
        meant = with_machines(meant, shipped_machines())
        schema = json.loads((ROOT / "schemas" / f"{REQUEST_SCHEMA}.schema.json").read_bytes())
        spelled = {meant.own_path(place): text for place, text in read.spelled.items()}
        in_schema = schema_faults(schema, meant.document, spelled)
        # Of a place with a fault of its text or form, the schema's is an echo.
        all_faults = (*(fault.moved(meant.written_path) for fault in in_schema), *meant.faults, *read.faults)
        faults = sorted(without_echoes({fault.path: fault for fault in all_faults}.values()))
        if not faults:
            return ProgramRequest(path=str(path), spec=spec_from(meant.document))
    else:
        faults = [*read.faults] or [Fault(path="$", problem="a request must be a mapping", value=read.value)]
    raise UnusableProgram(*(f"--request {str(path)!r}: {fault}" for fault in faults))


def _identity(program: Program) -> str:
    """The program apart from its arguments: packages run alike in executors for CPUs and for GPUs."""
    return program.module if isinstance(program, PythonPackage) else program.image


# Any: the schema has validated the types.
def _parameter(name: str, parameter: Mapping[str, Any]) -> ProgramParameter:
    kind = ParameterType(parameter["type"])
    low, high = parameter.get("min", 0), parameter.get("max", 0)
    if "values" in parameter:
        pair = (*parameter["values"], parameter["values"][0])[:2]
    else:
        pair = (low, min(low + 1, high) if kind is ParameterType.INTEGER else (low + high) / 2)
    convert = {ParameterType.INTEGER: int, ParameterType.CATEGORICAL: str}.get(kind, float)
    return ProgramParameter(name=name, type=kind, samples=(str(convert(pair[0])), str(convert(pair[1]))))
