"""`make demo`: one request becomes one model, trained by two replicas together."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trainmaster.cli.demo.model import ExportDamaged, show_model
from trainmaster.cli.demo.stage import Demo, Scene
from trainmaster.cli.demo.view import Line
from trainmaster.cli.demo.watch import Sighting
from trainmaster.cli.demo.way import Hop, hop_news, way_panel, whole_way
from trainmaster.client.logs.progress import ReplicaProgress, TrainingProgress
from trainmaster.resources import ROOT


def hops(seen: Sighting) -> list[Hop]:
    """The stations of a training, in order."""
    training = seen.training
    under = f" under {training.strategy}" if training.strategy else ""
    up = ", ".join(sorted(training.replicas)) + under
    return whole_way(
        seen,
        resource="CustomJob",
        at_work=[
            Hop(title="Both replicas up", at=seen.job_started_at, detail=up),
            Hop(title="Chief exports the model", at=seen.exported_at, detail=training.model_path or ""),
        ],
    )


def picture(seen: Sighting, _console: Console) -> RenderableType:
    """The whole way and the training, as they stand."""
    return Group(way_panel(hops(seen), seen.dropped_at), _panel(seen.training))


def _panel(training: TrainingProgress) -> Panel:
    table = Table.grid(padding=(0, 2))
    for _, replica in sorted(training.replicas.items()):
        bar = ProgressBar(total=replica.steps_total or 1, completed=replica.steps_done, width=32)
        table.add_row(Text(replica.replica, style="bold"), bar, Text(_numbers(replica)))
    title = f"Training, weights {training.weights}" if training.weights else "Training"
    return Panel(
        table if training.replicas else Text("waiting for the replicas", style="dim"),
        title=title,
        title_align="left",
    )


def _numbers(replica: ReplicaProgress) -> str:
    parts = [f"step {replica.steps_done}/{replica.steps_total or '?'}"]
    if replica.epochs:
        parts.append(f"epoch {max(replica.epoch, 1)}/{replica.epochs}")
    if replica.loss is not None:
        parts.append(f"loss {replica.loss:.3f}")
    if replica.accuracy is not None:
        parts.append(f"accuracy {replica.accuracy:.2f}")
    if replica.images_per_s is not None:
        parts.append(f"{replica.images_per_s:.0f} images/s")
    return "  ".join(parts)


def news(seen: Sighting) -> Iterator[Line]:
    """Each hop once it was passed, and each replica's progress at most once a quarter."""
    yield from hop_news(hops(seen), seen.dropped_at)
    for name, replica in sorted(seen.training.replicas.items()):
        quarter = 4 * replica.steps_done // (replica.steps_total or 1)
        if replica.steps_done:
            yield f"{name} {quarter}", f"{'':>9}  {name}  {_numbers(replica)}"


def report(console: Console, seen: Sighting, scene: Scene) -> int:
    """0 if the record says succeeded, the export is whole and the model answers; 1 with the reason otherwise."""
    console.rule("The run record", align="left")
    console.print_json(data=dict(seen.record))
    if seen.record.get("state") != "succeeded":
        said = f"The run ended {seen.record.get('state')}: {seen.record.get('failure')}"
        console.print(Text(said, style="red"))
        return 1
    try:
        show_model(console, seen.record["model"]["uri"], scene)
    except ExportDamaged as damage:
        console.print(Text(str(damage), style="red"))
        return 1
    return 0


run = Demo(
    request=ROOT / "examples" / "demo.yaml",
    data=("--dataset=cassava", "--examples=448"),
    picture=picture,
    news=news,
    report=report,
).run
