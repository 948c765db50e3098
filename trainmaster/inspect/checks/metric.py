"""A study counts only what is reported under its metric's own id: does the source report it?"""

import ast

from trainmaster.inspect.finding import FindingSubject, ProgramFinding, SourceLocation, nearest
from trainmaster.inspect.start import Check, Examined

REPORT = "report_hyperparameter_tuning_metric"
TAG = "hyperparameter_metric_tag"
DEFAULT_TAG = "training/hptuning/metric"  # hypertune/hypertune.py of cloudml-hypertune 0.1.0.dev6
FILE_VARIABLE = "CLOUD_ML_HP_METRIC_FILE"


def check(examined: Examined) -> Check:
    request, source = examined.request, examined.source
    if request is None or not request.metrics:
        return
    reports = [(_tag(call), module.place(call)) for module, call, name in source.calls() if name == REPORT]
    if (place := source.mention(FILE_VARIABLE)) is not None:
        reports.append((None, place))
    if not reports and source.gap:
        yield FindingSubject.METRIC.not_followed(f"whether a metric is reported: {source.gap}")
    elif not reports:
        first = request.metrics[0]
        yield FindingSubject.METRIC.fault(
            f"The request tunes for {', '.join(map(repr, request.metrics))}, but the program reports no metric",
            SourceLocation(path=request.path),
            repair="Install cloudml-hypertune and report it after each evaluation: hypertune.HyperTune()."
            f"{REPORT}({TAG}={first!r}, metric_value=…, global_step=…).",
        )
    else:
        yield from (_metric_finding(metric, reports) for metric in request.metrics)


def _metric_finding(metric: str, reports: list[tuple[str | None, SourceLocation]]) -> ProgramFinding:
    """Of reports with their tags, None where the source does not fix one, and their places."""
    for tag, place in reports:
        if tag in {metric, None}:
            seen = "a call here reports it" if tag else "a metric is reported here"
            return FindingSubject.METRIC.not_followed(f"whether trials report {metric!r}: {seen}", place)
    tags = sorted({tag for tag, _ in reports if tag})
    return FindingSubject.METRIC.fault(
        f"The study needs {metric!r}; the program reports {', '.join(map(repr, tags))}.{nearest(metric, tags)}",
        reports[0][1],
        repair=f"Name the metric {tags[0]!r} in the request, or report {metric!r} here.",
    )


def _tag(call: ast.Call) -> str | None:
    given = [keyword.value for keyword in call.keywords if keyword.arg in {TAG, None}] + call.args[:1]
    if not given:
        return DEFAULT_TAG
    tag = given[0].value if isinstance(given[0], ast.Constant) else None
    return tag if isinstance(tag, str) else None
