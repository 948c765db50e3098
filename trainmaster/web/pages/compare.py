"""Several runs side by side."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from trainmaster.client.find import Run, read_run
from trainmaster.client.runs.facts import candidate_of
from trainmaster.client.watch.curves import CHARTS_MAX, Chart, Series
from trainmaster.orchestrator.core.names import is_run_id
from trainmaster.orchestrator.core.runs.index import bounded_args
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.web.faults import WrongQuery
from trainmaster.web.pages.comparison import RUNS_MAX, RUNS_MIN, Section, compare
from trainmaster.web.pages.run.asked_run import monitored_run
from trainmaster.web.pages.run.drawings import chart_views
from trainmaster.web.pages.runs import runs
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import ApiRoute, Ask, ConsolePage, ConsoleSubject, PageRoute, QueryParameter

SHORT_ID_CHARS = 6

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


def comparison(ask: Ask) -> ConsolePage:
    """The marked runs, with the values that differ marked, or alone if the query says `only=differing`.

    With too few or too many marks, the list of runs says so.
    """
    if problem := _miscount(_ids(ask)):
        return runs(ask, notice=problem)
    found = _runs(ask)
    only = ask.query.get("only") == "differing"
    sections = compare([run.record for run in found])
    names = [run.record.run_id for run in found]
    return ConsolePage(
        title=f"{len(found)} runs compared",
        template="compare.html",
        values={
            "runs": [run.record for run in found],
            "sections": [each for each in map(_differing, sections) if each.rows] if only else sections,
            "only": only,
            "curves": ask.address("/runs/compare/curves", only=None),
            "other": ask.address("/runs/compare", only=None if only else "differing"),
        },
        command=f'for run in {shlex.join(names)}; do trainmaster status "$run" -o yaml; done',
        is_final=all(run.record.ended for run in found),
    )


def _differing(section: Section) -> Section:
    return replace(section, rows=tuple(row for row in section.rows if row.differs))


def _runs(ask: Ask) -> list[Run]:
    """The runs in the query, each once.

    Raises:
        WrongQuery: they are too few or too many, or some are not the ids of runs.
        NotFound: a run does not exist.
    """
    ids = _ids(ask)
    if problem := _miscount(ids):
        raise WrongQuery(problem)
    wrong = [each[:80] for each in ids if not is_run_id(each)]
    if wrong:
        raise WrongQuery(f"run: expected the ids of runs, found {', '.join(map(repr, wrong))}")
    return ask.source.read(("compared", *ids), AnswerAge.LIVE, lambda clients: _read(clients, ids))


def _ids(ask: Ask) -> list[str]:
    return list(dict.fromkeys(filter(None, ask.query.getlist("run"))))


def _miscount(ids: list[str]) -> str:
    if RUNS_MIN <= len(ids) <= RUNS_MAX:
        return ""
    return f"Mark {RUNS_MIN} to {RUNS_MAX} runs to compare; found {len(ids)}."


def _read(clients: "Clients", ids: list[str]) -> list[Run]:
    with ThreadPoolExecutor(len(ids)) as pool:
        return list(pool.map(lambda each: read_run(clients, each), ids))


def curves(ask: Ask) -> ConsolePage:
    """The curves of the marked runs over each other. Their logs are read, so it is loaded after the comparison."""
    ids = _ids(ask)
    if problem := _miscount(ids):
        raise WrongQuery(problem)
    with ThreadPoolExecutor(len(ids)) as pool:
        found = list(pool.map(lambda each: monitored_run(ask, each), ids))
    names = run_names([each.run.record for each in found])
    return ConsolePage(
        title=f"Curves of {len(found)} runs",
        template="compare_curves.html",
        values={
            "charts": chart_views(
                charts_of_runs(dict(zip(names, (each.charts for each in found), strict=True)))
            ),
            "is_partial": any(each.is_partial for each in found),
        },
        command=f'for run in {shlex.join(ids)}; do trainmaster logs "$run" -o json; done',
        is_final=all(each.is_over for each in found),
    )


def run_names(records: Sequence[RunRecord]) -> list[str]:
    """A different name for each run: the unique part of its id, and the chief's arguments in which the runs differ."""
    words = [_arguments(record) for record in records]
    ids = [record.run_id.rpartition("-")[2][:SHORT_ID_CHARS] for record in records]
    if len(set(ids)) < len(records):
        ids = [record.run_id for record in records]
    return [" ".join([run_id, *_differing_words(own, words)]) for run_id, own in zip(ids, words, strict=True)]


def _differing_words(own: Mapping[str, str], words: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for name, value in own.items():
        if any(each.get(name) != value for each in words):
            yield f"{name.lstrip('-')}={value}"


def _arguments(record: RunRecord) -> Mapping[str, str]:
    candidate = candidate_of(record)
    return {} if candidate is None else bounded_args(candidate.spec.cluster.chief.program.args)


def charts_of_runs(charts: Mapping[str, Sequence[Chart]]) -> list[Chart]:
    """A chart for each quantity, with a series for each run that has it: that of its first replica, the chief."""
    found: dict[tuple[str, str], list[Series]] = {}
    for name, own in charts.items():
        for chart in own:
            series = Series(name=name, points=chart.series[0].points)
            found.setdefault((chart.name, chart.x), []).append(series)
    return [Chart(name=name, x=x, series=tuple(series)) for (name, x), series in found.items()][:CHARTS_MAX]


SUBJECT = ConsoleSubject(
    pages=[
        PageRoute(path="/runs/compare", show=comparison),
        PageRoute(path="/runs/compare/curves", show=curves),
    ],
    api=[
        ApiRoute(
            path="/runs/compare",
            summary=f"The records of {RUNS_MIN} to {RUNS_MAX} runs, as `trainmaster status RUN -o json` prints each.",
            read=lambda ask: [run.document for run in _runs(ask)],
            parameters=[QueryParameter(name="run", description="the id of a run", repeated=True)],
        )
    ],
)
