"""The end of the tuning demo: compares the best trial with the job and the bucket, and draws the study."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trainmaster.cli.demo.model import ExportDamaged, show_model
from trainmaster.cli.demo.stage import Scene
from trainmaster.cli.demo.watch import Sighting
from trainmaster.cli.study.board import Board
from trainmaster.cli.study.study import Study, number, shown

FILE_COLUMNS = 200
"""A file or a pipe has no edge that a table could run over."""

Record = Mapping[str, Any]  # schemas/run_record.v2.schema.json


def report(console: Console, seen: Sighting, scene: Scene) -> int:
    """0 if everything that is shown holds; 1 with every reason otherwise."""
    problems = list(_shown(console, seen, scene))
    for problem in problems:
        console.print(Text(problem, style="red"))
    return 1 if problems else 0


def _shown(console: Console, seen: Sighting, scene: Scene) -> Iterator[str]:
    """Shows what there is, and yields what does not hold."""
    if seen.record.get("state") != "succeeded":
        yield f"The run ended {seen.record.get('state')}: {seen.record.get('failure')}"
    if seen.board is None:
        return
    study, best = seen.board.study, (seen.record.get("tuning") or {}).get("best_trial") or {}
    _show_trials(console, seen.board)
    yield from disagreements(seen.record, study)
    if best.get("model_uri"):
        _show_best(console, best)
        yield from _model_problems(console, best["model_uri"], scene)
    from trainmaster.cli.study.page import write_study  # draws with matplotlib, which takes long to import

    html, png = write_study(study, scene.state, model_uri=best.get("model_uri"), at=seen.board.at)
    console.rule("The study", align="left")
    run_id = seen.record.get("run_id")
    console.print(Text(f"record  gs://{scene.target.ledger_bucket}/runs/{run_id}.json"), soft_wrap=True)
    console.print(Text(f"page    {html}\npicture {png}", style="bold cyan"), soft_wrap=True)


def disagreements(record: Record, study: Study) -> Iterator[str]:
    """The differences between the run record and the job."""
    result: Record = record.get("tuning") or {}
    recorded_best, best = result.get("best_trial"), study.best
    if recorded_best is None or best is None:
        yield f"There is no best trial: {'; '.join(record.get('problems', ())) or 'the record does not say why'}"
        return
    model_uri = f"{record['request']['output_uri']}/{best.id}/model/"
    recorded = {trial["id"]: trial["state"] for trial in result.get("trials", ())}
    for what, said, found in (
        ("best trial", recorded_best["id"], best.id),
        ("best value", recorded_best["value"], best.result),
        ("best parameters", recorded_best["parameters"], dict(best.parameters)),
        ("model of the best trial", recorded_best["model_uri"], model_uri),
        ("model", (record.get("model") or {}).get("uri"), model_uri),
        ("states of trials", recorded, {trial.id: trial.state.value for trial in study.trials}),
    ):
        if said != found:
            yield f"The record's {what}: {said}. By the job: {found}."


def _model_problems(console: Console, model_uri: str, scene: Scene) -> Iterator[str]:
    try:
        show_model(console, model_uri, scene)
    except (ExportDamaged, OSError) as damage:
        yield str(damage)


def _show_trials(console: Console, board: Board) -> None:
    console.rule(Text(board.title, style="default"), align="left")
    width = console.width if console.is_terminal else FILE_COLUMNS
    console.print(board.table(width=width, height=len(board.study.trials) + 2), width=width)


def _show_best(console: Console, best: Record) -> None:
    console.rule("The best trial", align="left")
    table = Table.grid(padding=(0, 2))
    rows = {"trial": best["id"], f"{best['metric']} ({best['goal']})": number(best["value"])}
    rows |= {name: shown(value) for name, value in best["parameters"].items()}
    for name, value in rows.items():
        table.add_row(Text(name), Text(value, style="bold green"))
    console.print(table)
