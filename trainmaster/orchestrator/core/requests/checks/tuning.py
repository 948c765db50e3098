"""Where a tuning asks for what no study can be, beyond what a schema can say.

Checks read the raw document and pass over what has the wrong type: the schema reports that, in the
same report. Limits are the service's: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/StudySpec
"""

import math
import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence

from trainmaster.orchestrator.core.documents.faults import (
    Fault,
    fault_at,
    json_path,
    listed,
    nearest,
    shown,
)
from trainmaster.orchestrator.core.documents.unvalidated import Path, at, list_at, mapping_at
from trainmaster.orchestrator.core.requests.programs import roles_in, running

HERE: Path = ("tuning",)
DISCRETE_APART = 1e-10
NUMBERS = ("double", "integer")
LISTS = ("categorical", "discrete")
LOG_SCALES = ("log", "reverse_log")
_DATE = re.compile(r"(?P<year>[0-9]{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>[0-9]{2})T")


def tuning_faults(document: object) -> list[Fault]:
    """Every fault of the tuning, sorted by path; none where there is no tuning."""
    tuning = mapping_at(document, "tuning")
    flags = _flags_given(document)
    faults = [*_counts(tuning), *_metrics(tuning), *_moments(tuning)]
    for path, name, parameter in parameters_in(tuning):
        faults += _parameter(path, parameter)
        faults += _given_already(path, name, flags)
        faults += _without_steps(path, tuning, parameter)
    return sorted(faults)


def _given_already(path: Path, name: str, flags: Mapping[str, str]) -> Iterator[Fault]:
    if name in flags:
        problem = "args has this flag already, and the trials would be given it twice"
        repair = f"take --{name} out of {flags[name]}, or the parameter out of the tuning"
        yield fault_at(path, problem, found=f"--{name}", repair=repair)


def _without_steps(
    path: Path, tuning: Mapping[str, object], parameter: Mapping[str, object]
) -> Iterator[Fault]:
    if tuning.get("algorithm") == "grid" and parameter.get("type") == "double":
        yield fault_at(
            (*path, "type"),
            "a grid has no steps on a double",
            found="double",
            allowed=listed(("integer", "categorical", "discrete")),
            repair="list the steps: type: discrete, values: […]; or another algorithm",
        )


def parameters_in(tuning: Mapping[str, object]) -> Iterator[tuple[Path, str, Mapping[str, object]]]:
    """Every parameter with its path and name, conditional ones after the one they depend on."""
    waiting = [((*HERE, "parameters"), mapping_at(tuning, "parameters"))]
    while waiting:
        path, parameters = waiting.pop(0)
        for name, parameter in parameters.items():
            here, fields = (*path, name), mapping_at(parameter)
            yield here, name, fields
            for number, condition in enumerate(list_at(fields, "conditional")):
                inner = mapping_at(condition, "parameters")
                waiting.append(((*here, "conditional", number, "parameters"), inner))


def _flags_given(document: object) -> Mapping[str, str]:
    """The flags that any replica is given already, and the path of the arguments that have them."""
    given = [running(document, role) for role, _ in roles_in(document)] or [running(document, "chief")]
    return {flag: json_path(each.args_at) for each in reversed(given) for flag in flags_of(each.args)}


def flags_of(args: object) -> frozenset[str]:
    """The names of the flags in the arguments: `--epochs=2` and `--epochs` are both `epochs`."""
    words = [word for word in list_at(args) if isinstance(word, str)]
    return frozenset(word[2:].partition("=")[0] for word in words if word.startswith("--"))


def _counts(tuning: Mapping[str, object]) -> Iterator[Fault]:
    total = _number(tuning.get("max_trials"))
    for key, meaning in (("parallel_trials", "at once"), ("max_failed_trials", "may fail")):
        count = _number(tuning.get(key))
        if total is not None and count is not None and count > total:
            yield fault_at(
                (*HERE, key),
                f"more trials {meaning} than there are in all",
                found=count,
                allowed=f"at most max_trials, {total}",
                repair=f"write {key}: {total}, or raise max_trials",
            )


def _metrics(tuning: Mapping[str, object]) -> Iterator[Fault]:
    metrics = list_at(tuning, "metrics")
    ids = [mapping_at(metric).get("id") for metric in metrics]
    for number, name in enumerate(ids):
        if isinstance(name, str) and name in ids[:number]:
            path = json_path((*HERE, "metrics", number, "id"))
            yield Fault(path=path, problem="the metric stands here twice", found=shown(name))


def _moments(tuning: Mapping[str, object]) -> Iterator[Fault]:
    for key in ("min_end_time", "max_end_time"):
        moment = at(tuning, "stop_study", key)
        date = _DATE.match(moment) if isinstance(moment, str) else None
        if date and not 0 < int(date["day"]) <= monthrange(int(date["year"]) or 1, int(date["month"]))[1]:
            path = json_path((*HERE, "stop_study", key))
            yield Fault(path=path, problem="the month has no such day", found=shown(moment))


def _parameter(path: Path, parameter: Mapping[str, object]) -> Iterator[Fault]:
    kind = parameter.get("type")
    if kind in NUMBERS:
        yield from _belongs(path, parameter, ("min", "max"), ("values",))
        yield from _range(path, parameter)
    elif kind in LISTS:
        yield from _belongs(path, parameter, ("values",), ("min", "max"))
        yield from _values(path, parameter)
    yield from _scale(path, parameter)
    yield from _default(path, parameter)
    yield from _conditions(path, parameter)


def _belongs(
    path: Path, parameter: Mapping[str, object], needed: Sequence[str], foreign: Sequence[str]
) -> Iterator[Fault]:
    kind = parameter["type"]
    for key in needed:
        if key not in parameter:
            yield fault_at((*path, key), f"missing: a parameter of type {kind} needs it")
    for key in foreign:
        if key in parameter:
            yield fault_at(
                (*path, key),
                f"a parameter of type {kind} has none",
                found=parameter[key],
                allowed=listed(needed),
                repair="write type: discrete or categorical"
                if key == "values"
                else "list the values instead",
            )


def _range(path: Path, parameter: Mapping[str, object]) -> Iterator[Fault]:
    low, high = _number(parameter.get("min")), _number(parameter.get("max"))
    if low is not None and high is not None and low > high:
        yield fault_at(
            (*path, "min"),
            "min is above max",
            found=low,
            allowed=f"at most max, {high}",
            repair="exchange the two",
        )
    if parameter["type"] == "integer":
        for key in ("min", "max", "default"):
            number = _number(parameter.get(key))
            if number is not None and not _is_int64(number):
                yield fault_at(
                    (*path, key),
                    "a whole number of 64 bits is wanted here",
                    found=parameter[key],
                    repair="write type: double where fractions are meant",
                )


def _values(path: Path, parameter: Mapping[str, object]) -> Iterator[Fault]:
    values = list_at(parameter, "values")
    check = _discrete if parameter["type"] == "discrete" else _categorical
    for number, value in enumerate(values):
        here = (*path, "values", number)
        kind_fault = check(here, value)
        if kind_fault is not None:
            yield kind_fault
        elif value in values[:number]:
            yield fault_at(here, "the value stands here twice", found=value, repair="keep one")
        elif check is _discrete and number:
            yield from _ascending(here, _number(values[number - 1]), value)


def _discrete(path: Path, value: object) -> Fault | None:
    if _number(value) is not None:
        return None
    repair = "write type: categorical" if isinstance(value, str) else ""
    return fault_at(path, "a discrete value is a number", found=value, repair=repair)


def _categorical(path: Path, value: object) -> Fault | None:
    if isinstance(value, str):
        return None
    repair = f'quote it: "{value}"; or write type: discrete'
    return fault_at(path, "a categorical value is a string", found=value, repair=repair)


def _ascending(path: Path, before: float | None, value: object) -> Iterator[Fault]:
    now = _number(value)
    if before is not None and now is not None and now - before < DISCRETE_APART:
        problem = f"discrete values increase, by at least {DISCRETE_APART}"
        found = f"{shown(value)} after {shown(before)}"
        yield Fault(path=json_path(path), problem=problem, found=found, repair="sort the values")


def _scale(path: Path, parameter: Mapping[str, object]) -> Iterator[Fault]:
    scale, kind, here = parameter.get("scale"), parameter.get("type"), (*path, "scale")
    if scale is not None and kind == "categorical":
        yield fault_at(here, "a categorical parameter has no scale", found=scale, repair="leave it out")
    elif scale in LOG_SCALES:
        numbers = [parameter.get("min")] if kind in NUMBERS else list_at(parameter, "values")
        low = min((number for number in map(_number, numbers) if number is not None), default=None)
        if low is not None and low <= 0:
            yield Fault(
                path=json_path(here),
                problem=f"a {scale} scale has no zero and nothing below",
                found=f"{scale} from {low}",
                allowed="values above 0",
                repair="begin above 0, for example at 0.0001, or write scale: linear",
            )


def _default(path: Path, parameter: Mapping[str, object]) -> Iterator[Fault]:
    default = parameter.get("default")
    if default is None:
        return
    if parameter.get("type") in LISTS:
        values = list_at(parameter, "values")
        fits, allowed = default in values, listed(values)
    else:
        low, high, number = (_number(each) for each in (parameter.get("min"), parameter.get("max"), default))
        fits = number is not None and (low is None or low <= number) and (high is None or number <= high)
        allowed = f"{low} to {high}"
    if not fits:
        yield fault_at(
            (*path, "default"), "the default is none of the values", found=default, allowed=allowed
        )


def _conditions(path: Path, parameter: Mapping[str, object]) -> Iterator[Fault]:
    conditions = list_at(parameter, "conditional")
    if conditions and parameter.get("type") == "double":
        allowed, repair = "integer, categorical or discrete parents", "list the values: type: discrete"
        problem = "nothing can depend on a double"
        yield fault_at((*path, "conditional"), problem, allowed=allowed, repair=repair)
        return
    for number, condition in enumerate(conditions):
        yield from _when((*path, "conditional", number, "when"), list_at(condition, "when"), parameter)


def _when(path: Path, when: Sequence[object], parameter: Mapping[str, object]) -> Iterator[Fault]:
    for place, value in enumerate(when):
        if not _can_be(value, parameter):
            problem, allowed = "the parameter above never takes this value", _possible(parameter)
            repair = _near(value, parameter)
            yield fault_at((*path, place), problem, found=value, allowed=allowed, repair=repair)
        elif value in when[:place]:
            yield fault_at((*path, place), "the value stands here twice", found=value)


def _can_be(value: object, parameter: Mapping[str, object]) -> bool:
    if parameter.get("type") in LISTS:
        return value in list_at(parameter, "values")
    number, low, high = (_number(each) for each in (value, parameter.get("min"), parameter.get("max")))
    if number is None or not _is_int64(number):
        return False
    return (low is None or low <= number) and (high is None or number <= high)


def _possible(parameter: Mapping[str, object]) -> str:
    if parameter.get("type") in LISTS:
        return listed(list_at(parameter, "values"))
    return f"whole numbers from {parameter.get('min')} to {parameter.get('max')}"


def _near(value: object, parameter: Mapping[str, object]) -> str:
    known = [each for each in list_at(parameter, "values") if isinstance(each, str)]
    return nearest(value, known) if isinstance(value, str) else ""


def _is_int64(number: float) -> bool:
    return math.isfinite(number) and number == int(number) and -(2**63) <= number < 2**63


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
