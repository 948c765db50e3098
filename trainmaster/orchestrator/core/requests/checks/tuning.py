"""Faults of a tuning that no study can be, beyond what a schema can say.

Limits are the service's: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/StudySpec
"""

import math
import re
from calendar import monthrange
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from trainmaster.orchestrator.core.documents.faults import (
    Fault,
    Suggestions,
    json_path,
    listed,
    nearest,
    shown,
)
from trainmaster.orchestrator.core.documents.values import Path, at, list_at, mapping_at
from trainmaster.orchestrator.core.requests.checks.metrics import usual_goal
from trainmaster.orchestrator.core.requests.draft import Draft
from trainmaster.orchestrator.core.requests.spec import Goal

HERE: Path = ("tuning",)
DISCRETE_APART = 1e-10
NUMBERS = ("double", "integer")
LISTS = ("categorical", "discrete")
LOG_SCALES = ("log", "reverse_log")
TWICE = "duplicate value"
_DATE = re.compile(r"(?P<year>[0-9]{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>[0-9]{2})T")


def tuning_faults(draft: Draft) -> list[Fault]:
    """Every fault of the tuning, sorted by path; none where there is no tuning."""
    tuning = draft.tuning
    flags, suggestions = given_flags(draft), Suggestions()
    faults = [*_counts(tuning), *_metrics(tuning), *_moments(tuning), *_names(tuning)]
    for path, name, parameter in iter_parameters(tuning):
        faults += _parameter(path, parameter, suggestions)
        if name in flags:
            problem = "args already has this flag, so trials would receive it twice"
            repair = f"remove --{name} from {flags[name]}, or the parameter from the tuning"
            faults.append(Fault(at=path, problem=problem, value=f"--{name}", repair=repair))
        if tuning.get("algorithm") == "grid" and parameter.get("type") == "double":
            problem, among = "grid search cannot step through a double", ("integer", *LISTS)
            repair = "list the steps: type: discrete, values: […]; or another algorithm"
            at_type = (*path, "type")
            faults.append(Fault(at=at_type, problem=problem, value="double", among=among, repair=repair))
    return sorted(faults)


def iter_parameters(tuning: Mapping[str, object]) -> Iterator[tuple[Path, str, Mapping[str, object]]]:
    """Every parameter with its path and name, conditional ones after the one they depend on."""
    waiting = deque([((*HERE, "parameters"), mapping_at(tuning, "parameters"))])
    while waiting:
        path, parameters = waiting.popleft()
        for name, parameter in parameters.items():
            here, fields = (*path, name), mapping_at(parameter)
            yield here, name, fields
            for number, condition in enumerate(list_at(fields, "conditional")):
                inner = mapping_at(condition, "parameters")
                waiting.append(((*here, "conditional", number, "parameters"), inner))


def given_flags(draft: Draft) -> Mapping[str, str]:
    """The flags that any replica is given already, and the path of the arguments that have them."""
    runs = reversed([draft.running[role] for role in draft.roles or ("chief",)])
    return {flag: json_path(one.args_at) for one in runs for flag in flags_of(one.args)}


def flags_of(args: Sequence[object]) -> frozenset[str]:
    """The names of the flags in the arguments: `--epochs=2` and `--epochs` are both `epochs`."""
    words = [word for word in args if isinstance(word, str)]
    return frozenset(word[2:].partition("=")[0] for word in words if word.startswith("--"))


def _counts(tuning: Mapping[str, object]) -> Iterator[Fault]:
    total = _number(tuning.get("max_trials"))
    if total is None:
        return  # the schema says what is wrong with it
    for key, meaning in (("parallel_trials", "at once"), ("max_failed_trials", "allowed to fail")):
        count = _number(tuning.get(key))
        if total < 1 and key == "max_failed_trials":
            continue  # how many there may be, a correct max_trials alone says
        if count is not None and count > max(total, 1):
            yield Fault(
                at=(*HERE, key),
                problem=f"more trials {meaning} than max_trials",
                value=count,
                allowed=f"at most max_trials, {total}",
                repair=f"write {key}: {total}, or raise max_trials" if total >= 1 else "raise max_trials",
            )


def _metrics(tuning: Mapping[str, object]) -> Iterator[Fault]:
    metrics = [mapping_at(metric) for metric in list_at(tuning, "metrics")]
    ids: set[str] = set()
    for number, metric in enumerate(metrics):
        name = metric.get("id")
        if isinstance(name, str) and name in ids:
            path = (*HERE, "metrics", number, "id")
            yield Fault(at=path, problem="duplicate metric", value=name)
        elif isinstance(name, str):
            ids.add(name)
    if metrics and all("safety" in metric for metric in metrics):
        yield Fault(
            at=(*HERE, "metrics"),
            problem="every metric is a safety metric, so there is nothing to optimize",
            found=listed(ids),
            repair="add the metric to optimize first, without safety",
        )


def _names(tuning: Mapping[str, object]) -> Iterator[Fault]:
    """A trial is given each flag once. Source: StudySpec.ParameterSpec, parameter_id and conditional_parameter_specs."""
    parents: dict[str, Path] = {}
    for path, name, _parameter in iter_parameters(tuning):
        parent = path[:-4]  # (..., PARENT, "conditional", NUMBER, "parameters", name); empty at the top
        if parents.setdefault(name, parent) != parent:
            problem = (
                "a parameter under another parent has this name, so a trial could receive the flag twice"
            )
            yield Fault(at=path, problem=problem, value=name, repair="give each a unique name")
    rate = at(tuning, "early_stopping", "learning_rate_parameter")
    if isinstance(rate, str) and rate not in parents:
        yield Fault(
            at=(*HERE, "early_stopping", "learning_rate_parameter"),
            problem="the tuning has no parameter with this name",
            value=rate,
            among=sorted(parents),
            repair=nearest(rate, list(parents)),
        )


def _moments(tuning: Mapping[str, object]) -> Iterator[Fault]:
    for key in ("min_end_time", "max_end_time"):
        moment = at(tuning, "stop_study", key)
        date = _DATE.match(moment) if isinstance(moment, str) else None
        if date and not 0 < int(date["day"]) <= monthrange(int(date["year"]) or 1, int(date["month"]))[1]:
            path = (*HERE, "stop_study", key)
            yield Fault(at=path, problem="the month does not have this day", value=moment)


def _parameter(path: Path, parameter: Mapping[str, object], suggestions: Suggestions) -> Iterator[Fault]:
    if parameter.get("type") in LISTS:
        yield from _values(path, parameter)
    else:  # of a misspelt type, too: its bounds are checked in the same report
        yield from _range(path, parameter)
    yield from _scale(path, parameter)
    yield from _default(path, parameter)
    yield from _when_faults(path, parameter, suggestions)
    yield from _given_twice((*path, "conditional"), list_at(parameter, "conditional"))


def _range(path: Path, parameter: Mapping[str, object]) -> Iterator[Fault]:
    low, high = _bounds(parameter)
    if low is not None and high is not None and low > high:
        allowed, repair = f"at most max, {high}", "swap them"
        yield Fault(at=(*path, "min"), problem="min is above max", value=low, allowed=allowed, repair=repair)
    for key in ("min", "max", "default") if parameter.get("type") == "integer" else ():
        number = _number(parameter.get(key))
        if number is not None and not _is_int64(number):
            yield Fault(
                at=(*path, key),
                problem="expected a 64-bit integer",
                value=parameter[key],
                repair="write type: double where fractions are meant",
            )


def _values(path: Path, parameter: Mapping[str, object]) -> Iterator[Fault]:
    values = list_at(parameter, "values")
    is_discrete = parameter["type"] == "discrete"
    earlier: set[object] = set()
    for number, value in enumerate(values):
        here = (*path, "values", number)
        now, before = _number(value), _number(values[number - 1]) if number else None
        if not isinstance(value, str | int | float):
            continue  # the schema reports it
        if value in earlier:
            yield Fault(at=here, problem=TWICE, value=value, repair="keep one")
        elif is_discrete and now is not None and before is not None and now - before < DISCRETE_APART:
            yield Fault(
                at=here,
                problem=f"discrete values must increase by at least {DISCRETE_APART}",
                found=f"{shown(value)} after {shown(before)}",
                repair="sort the values",
            )
        earlier.add(value)


def _scale(path: Path, parameter: Mapping[str, object]) -> Iterator[Fault]:
    scale, is_range = parameter.get("scale"), parameter.get("type") in NUMBERS
    numbers = [parameter.get("min")] if is_range else list_at(parameter, "values")
    low = min((number for number in map(_number, numbers) if number is not None), default=None)
    if scale in LOG_SCALES and low is not None and low <= 0:
        yield Fault(
            at=(*path, "scale"),
            problem=f"a {scale} scale allows only values above 0",
            found=f"{scale} from {low}",
            allowed="values above 0",
            repair="start above 0, for example at 0.0001, or write scale: linear",
        )


def _default(path: Path, parameter: Mapping[str, object]) -> Iterator[Fault]:
    default, number = parameter.get("default"), _number(parameter.get("default"))
    if default is None:
        return
    if parameter.get("type") in LISTS:
        values = list_at(parameter, "values")
        fits, allowed = default in values, listed(values)
    else:
        low, high = _bounds(parameter)
        fits, allowed = number is not None and _is_between(low, number, high), f"{low} to {high}"
    if not fits:
        problem = "the default is not an allowed value"
        yield Fault(at=(*path, "default"), problem=problem, value=default, allowed=allowed)


def _when_faults(path: Path, parameter: Mapping[str, object], suggestions: Suggestions) -> Iterator[Fault]:
    """Values in `when` that the parameter never takes, and those that one condition names twice."""
    (low, high), values = _bounds(parameter), list_at(parameter, "values")
    is_listed = parameter.get("type") in LISTS
    known = {value for value in values if isinstance(value, str | int | float)}
    words = [value for value in values if isinstance(value, str)]
    between = f"whole numbers from {parameter.get('min')} to {parameter.get('max')}"
    for number, condition in enumerate(list_at(parameter, "conditional")):
        earlier: set[object] = set()
        for place, value in enumerate(list_at(condition, "when")):
            here, whole = (*path, "conditional", number, "when", place), _number(value)
            fits = whole is not None and _is_int64(whole) and _is_between(low, whole, high)
            if is_listed:
                fits = isinstance(value, str | int | float) and value in known
            if not fits:
                problem = "the parent parameter never takes this value"
                allowed = listed(values) if is_listed else between
                repair = nearest(value, words, suggestions) if isinstance(value, str) else ""
                yield Fault(at=here, problem=problem, value=value, allowed=allowed, repair=repair)
            elif value in earlier:
                yield Fault(at=here, problem=TWICE, value=value)
            else:
                earlier.add(value)


def _given_twice(path: Path, conditions: Sequence[object]) -> Iterator[Fault]:
    """A name may stand under several conditions only where no value of the parent meets two of them."""
    named: dict[str, list[int]] = {}
    for number, condition in enumerate(conditions):
        for name in mapping_at(condition, "parameters"):
            named.setdefault(name, []).append(number)
    when: list[set[object]] = [
        {value for value in list_at(condition, "when") if isinstance(value, str | int | float)}
        for condition in conditions
    ]
    # Each group once: thousands of names may stand under the same conditions.
    met_again = {group: _met_again(group, when) for group in {tuple(numbers) for numbers in named.values()}}
    for name, numbers in named.items():
        for number in met_again[tuple(numbers)]:
            yield Fault(
                at=(*path, number, "parameters", name),
                problem="the parameter appears twice for some value of its parent",
                value=name,
                repair="use different values in the two `when` lists, or give each parameter a unique name",
            )


def _met_again(group: Sequence[int], when: Sequence[set[object]]) -> list[int]:
    """The conditions of the group that some value meets which also meets an earlier one of it."""
    met: set[object] = set()
    again = []
    for number in group:
        if not met.isdisjoint(when[number]):
            again.append(number)
        met |= when[number]
    return again


def _bounds(parameter: Mapping[str, object]) -> tuple[float | None, float | None]:
    return _number(parameter.get("min")), _number(parameter.get("max"))


def _is_between(low: float | None, number: float, high: float | None) -> bool:
    return (low is None or low <= number) and (high is None or number <= high)


def _is_int64(number: float) -> bool:
    return math.isfinite(number) and number == int(number) and -(2**63) <= number < 2**63


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def goal_warnings(draft: Draft) -> Iterator[Fault]:
    """Goals of a tuning or a champion that are opposite to what the metric's name says. The name may be odd: no faults."""
    metrics = enumerate(map(mapping_at, list_at(draft.tuning, "metrics")))
    tuned = ((("tuning", "metrics", number, "goal"), metric, "id") for number, metric in metrics)
    for path, metric, key in (
        (("champion", "goal"), mapping_at(draft.document, "champion"), "metric"),
        *tuned,
    ):
        name, goal = metric.get(key), metric.get("goal")
        usual = usual_goal(name) if isinstance(name, str) else None
        if usual not in (None, goal):
            better = "higher" if usual is Goal.MAXIMIZE else "lower"
            problem = f"{name} is usually better when it is {better}, so the worst value would win"
            repair = f"write goal: {usual}, unless the name means something else here"
            yield Fault(at=path, problem=problem, value=goal, repair=repair)
