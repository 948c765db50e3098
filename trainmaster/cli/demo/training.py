"""`make demo`: one request becomes one model, trained by two replicas together."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trainmaster.cli.demo.exported_model import ExportDamaged
from trainmaster.cli.demo.model import show_model
from trainmaster.cli.demo.progress import ReplicaProgress, TrainingProgress
from trainmaster.cli.demo.stage import Demo, Dropped, Scene
from trainmaster.cli.demo.trail import Trail, with_job
from trainmaster.cli.demo.view import News, View, hop_news, way_panel
from trainmaster.cli.demo.way import Hop, Sighting, whole_way
from trainmaster.client.clients import Target
from trainmaster.resources import ROOT


@dataclass(frozen=True, kw_only=True)
class TrainingSighting(Sighting):
    """One training at one moment."""

    exported_at: datetime | None = None
    training: TrainingProgress = field(default_factory=TrainingProgress)


class TrainingWatch:
    """Follows one dropped request through the services, by polling their public APIs."""

    def __init__(self, target: Target, dropped: Dropped) -> None:
        self._trail = Trail(target, dropped)
        self._training = TrainingProgress()
        self._exported_at: datetime | None = None

    def look(self) -> TrainingSighting:
        """Where the request stands now."""
        seen = self._trail.look()
        for entry in self._trail.entries:
            if isinstance(entry.payload, dict):
                self._training = self._training.after(entry.payload)
                if entry.payload.get("event") == "model_exported":
                    self._exported_at = entry.timestamp
        if not seen.job_name:
            return TrainingSighting(**vars(seen))
        job = self._trail.jobs.get_custom_job(name=seen.job_name)
        return TrainingSighting(**with_job(seen, job), exported_at=self._exported_at, training=self._training)


def hops(seen: TrainingSighting) -> list[Hop]:
    """The stations of a training, in order."""
    training = seen.training
    under = f" under {training.strategy}" if training.strategy else ""
    return whole_way(
        seen,
        resource="CustomJob",
        at_work=[
            Hop(
                title="Both replicas up",
                at=seen.job_started_at,
                detail=", ".join(sorted(training.replicas)) + under,
            ),
            Hop(title="Chief exports the model", at=seen.exported_at, detail=training.model_path or ""),
        ],
    )


def picture(seen: TrainingSighting, _console: Console) -> RenderableType:
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


def news(seen: TrainingSighting) -> Iterator[News]:
    """Each hop once it was passed, and each replica's progress at most once a quarter."""
    yield from hop_news(hops(seen), seen.dropped_at)
    for name, replica in sorted(seen.training.replicas.items()):
        quarter = 4 * replica.steps_done // (replica.steps_total or 1)
        if replica.steps_done:
            yield f"{name} {quarter}", f"{'':>9}  {name}  {_numbers(replica)}"


def report(console: Console, seen: TrainingSighting, scene: Scene) -> int:
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


def view(console: Console) -> View[TrainingSighting]:
    return View(console, picture=picture, news=news)


run = Demo(
    request=ROOT / "examples" / "demo.yaml",
    dataset="cassava",
    watch=TrainingWatch,
    view=view,
    report=report,
).run
