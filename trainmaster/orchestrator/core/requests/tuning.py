"""What a request wants tuned, in our own words: everything that Vertex AI's StudySpec can say.

Source: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/StudySpec
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Value = float | int | str


class Goal(StrEnum):
    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


class ParameterType(StrEnum):
    DOUBLE = "double"
    INTEGER = "integer"
    CATEGORICAL = "categorical"
    DISCRETE = "discrete"


class Algorithm(StrEnum):
    BAYESIAN = "bayesian"
    GRID = "grid"
    RANDOM = "random"


class Measurement(StrEnum):
    """Which of a trial's measurements counts."""

    BEST = "best"
    LAST = "last"


class StoppingRule(StrEnum):
    """When a running trial is given up."""

    MEDIAN = "median"
    DECAY_CURVE = "decay_curve"
    CONVEX = "convex"


@dataclass(frozen=True, kw_only=True)
class Safety:
    """A metric that must stay on the good side of `threshold`."""

    threshold: float
    min_safe_fraction: float | None = None


@dataclass(frozen=True, kw_only=True)
class Metric:
    id: str
    goal: Goal
    safety: Safety | None = None


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One flag that the trials vary. Ranges have `min` and `max`, categorical and discrete ones `values`."""

    name: str
    type: ParameterType
    min: float | None = None
    max: float | None = None
    values: tuple[Value, ...] = ()
    scale: str | None = None
    default: Value | None = None
    conditional: tuple["Condition", ...] = ()


@dataclass(frozen=True, kw_only=True)
class Condition:
    """These parameters are there only where the one above took one of the values in `when`."""

    when: tuple[Value, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, kw_only=True)
class EarlyStopping:
    """The rule, and its settings by the names of the request."""

    rule: StoppingRule
    settings: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """A study and how many trials it has. `max_failed_trials` 0 leaves it to the service."""

    metrics: tuple[Metric, ...]
    parameters: tuple[Parameter, ...]
    max_trials: int
    parallel_trials: int = 1
    max_failed_trials: int = 0
    algorithm: Algorithm = Algorithm.BAYESIAN
    measurement: Measurement = Measurement.LAST
    early_stopping: EarlyStopping | None = None
    stop_study: Mapping[str, object] | None = None
    observation_noise: str | None = None


# Any: the schema and the checks vouch for the types.
def tuning_from(document: Mapping[str, Any]) -> Tuning:
    """The tuning of a request that the schema accepts and `tuning_faults` finds nothing wrong with."""
    stopping = document.get("early_stopping")
    return Tuning(
        metrics=tuple(_metric(metric) for metric in document["metrics"]),
        parameters=tuple(_parameters(document["parameters"])),
        max_trials=document["max_trials"],
        parallel_trials=document.get("parallel_trials", 1),
        max_failed_trials=document.get("max_failed_trials", 0),
        algorithm=Algorithm(document.get("algorithm", Algorithm.BAYESIAN)),
        measurement=Measurement(document.get("measurement", Measurement.LAST)),
        early_stopping=None
        if stopping is None
        else EarlyStopping(
            rule=StoppingRule(stopping["rule"]),
            settings={name: value for name, value in stopping.items() if name != "rule"},
        ),
        stop_study=document.get("stop_study"),
        observation_noise=document.get("observation_noise"),
    )


def _metric(document: Mapping[str, Any]) -> Metric:
    return Metric(
        id=document["id"],
        goal=Goal(document["goal"]),
        safety=Safety(**document["safety"]) if "safety" in document else None,
    )


def _parameters(documents: Mapping[str, Any]) -> Iterator[Parameter]:
    for name, document in documents.items():
        yield Parameter(
            name=name,
            type=ParameterType(document["type"]),
            min=document.get("min"),
            max=document.get("max"),
            values=tuple(document.get("values", ())),
            scale=document.get("scale"),
            default=document.get("default"),
            conditional=tuple(
                Condition(when=tuple(each["when"]), parameters=tuple(_parameters(each["parameters"])))
                for each in document.get("conditional", ())
            ),
        )
