"""A study counts only what is reported under its metric's own id."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.inspect.checks.examined import Check, Examined, beyond
from trainmaster.inspect.finding import Finding, Location, Subject, nearest
from trainmaster.inspect.source.module import Module, argument, last_name, words
from trainmaster.inspect.source.origins import texts_of

REPORT = "report_hyperparameter_tuning_metric"
DEFAULT_TAG = "training/hptuning/metric"  # hypertune/hypertune.py of cloudml-hypertune 0.1.0.dev6
TAG_VARIABLE, FILE_VARIABLE = "CLOUD_ML_HP_METRIC_TAG", "CLOUD_ML_HP_METRIC_FILE"


@dataclass(frozen=True, kw_only=True)
class Report:
    """A place that reports; `tags` None where the source does not fix them."""

    place: Location
    tags: frozenset[str] | None
    follows_study: bool = False  # it reports what CLOUD_ML_HP_METRIC_TAG says


def check(examined: Examined) -> Check:
    request = examined.request
    if request is None or not request.is_tuning:
        return
    reports = list(_reports(examined))
    if not reports and not examined.program.is_whole:
        yield Subject.METRIC.unknown(f"whether a metric is reported: {beyond(examined.program)}")
        return
    if not reports:
        yield Subject.METRIC.fault(
            found=f"The request tunes for {', '.join(map(repr, request.metrics))}, but the program reports no metric",
            place=Location(path=request.path),
            repair=_repair(examined, request.metrics[0]),
        )
        return
    for metric in request.metrics:
        yield _metric_finding(metric, reports)


def _repair(examined: Examined, metric: str) -> str:
    where = "in on_epoch_end of a Keras callback" if examined.framework == "keras" else "in the training loop"
    call = (
        f"hypertune.HyperTune().{REPORT}(hyperparameter_metric_tag={metric!r}, metric_value=…, global_step=…)"
    )
    return f"Install cloudml-hypertune and report it after each evaluation, {where}: {call}."


def _metric_finding(metric: str, reports: list[Report]) -> Finding:
    for report in reports:
        if report.follows_study or metric in (report.tags or ()):
            return Subject.METRIC.fine(f"The study's metric {metric!r} is reported", report.place)
    if unfixed := [report for report in reports if report.tags is None]:
        return Subject.METRIC.unknown(f"whether {metric!r} is among the metrics reported", unfixed[0].place)
    tags = sorted({tag for report in reports for tag in report.tags or ()})
    return Subject.METRIC.fault(
        found=f"The study needs {metric!r}; the program reports {', '.join(map(repr, tags))}.{nearest(metric, tags)}",
        place=reports[0].place,
        repair=f"Name the metric {tags[0]!r} in the request, or report {metric!r} here.",
    )


def _reports(examined: Examined) -> Iterator[Report]:
    for module, call in examined.program.calls():
        if last_name(call.func) == REPORT:
            yield _by_hypertune(examined, module, call)
    if (place := examined.program.mention(FILE_VARIABLE)) is not None:
        yield Report(place=place, tags=None)


def _by_hypertune(examined: Examined, module: Module, call: ast.Call) -> Report:
    place = module.place(call)
    given = argument(call, ["hyperparameter_metric_tag"], 0)
    if given is None:
        has_more = any(argument.arg is None for argument in call.keywords)
        return Report(place=place, tags=None if has_more else frozenset({DEFAULT_TAG}))
    if TAG_VARIABLE in words(given):
        return Report(place=place, tags=None, follows_study=True)
    return Report(place=place, tags=texts_of(examined.program, module, given))
