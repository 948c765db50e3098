"""`make demo`: one request becomes one model, trained by two replicas together."""

from rich.console import Console
from rich.text import Text

from trainmaster.cli.demo.model import ExportDamaged, model_facts
from trainmaster.cli.demo.stage import Demo, Scene, run_facts, summary
from trainmaster.cli.logs.bars import numbers_of
from trainmaster.client.logs.progress import TrainingProgress
from trainmaster.client.watch.sighting import Sighting
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.resources import ROOT


def report(console: Console, seen: Sighting, scene: Scene) -> int:
    """0 if the record says succeeded, the export is whole and the model answers; 1 with the reason otherwise."""
    record = seen.run.record
    facts = run_facts(seen, scene) | {"Training": _training(seen.training.get("", TrainingProgress()))}
    if record.state is not RunState.SUCCEEDED or record.model is None:
        summary(console, facts)
        why = record.failure.message if record.failure else "; ".join(record.problems)
        console.print(Text(f"The run ended {record.state}: {why}", style="red"))
        return 1
    try:
        facts |= model_facts(console, record.model.uri, scene)
    except ExportDamaged as damage:
        console.print(Text(str(damage), style="red"))
        return 1
    finally:
        summary(console, facts)
    return 0


def _training(training: TrainingProgress) -> str:
    furthest = max(training.replicas.values(), key=lambda each: each.steps_done, default=None)
    if furthest is None:
        return "no replica logged its progress"
    return f"{len(training.replicas)} replicas  {numbers_of(furthest)}"


run = Demo(
    request=ROOT / "examples" / "demo.yaml", data=("--dataset=cassava", "--examples=448"), report=report
).run
