"""The request that trains with the parameters of a study's best trial."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from trainmaster.client.errors import NotFound
from trainmaster.client.study.read import TuningStudy
from trainmaster.client.study.study import StudyTrial
from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.requests.draft import names_program

_Request = dict[str, Any]


def best_request(tuning: TuningStudy) -> _Request:
    """The run's request without its tuning; every program gets the best trial's parameters as flags, as in the trial.

    A `model_uri` with the trial's id in it is left out: the model of one run is in its AIP_MODEL_DIR.

    Raises:
        NotFound: no trial has a result, or the job belongs to no run.
    """
    run, best = tuning.run, tuning.study.best
    if run is None or run.record.request is None:
        raise NotFound(
            f"{tuning.study.name} was found by its own name. A request is that of a run: trainmaster ls"
        )
    if best is None:
        raise NotFound(f"No trial of {run.record.run_id} has a result yet, so none is the best.")
    found: _Request = deepcopy(dict(run.record.request.document))
    flags = list(_flags(best, mapping_at(found, "tuning", "parameters")))
    found.pop("tuning", None)
    if "${trial}" in str(found.get("model_uri", "")):
        del found["model_uri"]
    for place in _programs(found):
        place["args"] = [*place.get("args", []), *flags]
    return found


def _programs(request: _Request) -> Iterator[_Request]:
    """Wherever a program's arguments are, also those that fallbacks replace."""
    yield request
    yield from (role for role in _roles(request) if "args" in role or names_program(role))
    for fallback in request.get("fallbacks", []):
        yield from (each for each in (fallback, *_roles(fallback)) if "args" in each)


def _roles(part: _Request) -> list[_Request]:
    return [role for role in (part.get("cluster") or {}).values() if isinstance(role, dict)]


def _flags(trial: StudyTrial, parameters: Mapping[str, object]) -> Iterator[str]:
    """`--NAME=VALUE` as the service passes them: only a double parameter's whole numbers have a decimal point."""
    for name, value in trial.parameters.items():
        is_double = mapping_at(parameters, name).get("type") == "double"
        is_whole = isinstance(value, float) and value.is_integer() and not is_double
        yield f"--{name}={int(value) if is_whole else value}".replace("${", "$${")
