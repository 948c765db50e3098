"""The end of the tuning demo: compares the best trial with the job and the bucket, and draws the study."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from trainmaster.cli.demo.model import ExportDamaged, model_facts
from trainmaster.cli.demo.stage import Scene, run_facts, summary
from trainmaster.client.study.find import tuning_with
from trainmaster.client.study.study import Study, number, shown
from trainmaster.client.watch.sighting import Sighting

Record = Mapping[str, Any]  # schemas/run_record.v2.schema.json


def report(console: Console, seen: Sighting, scene: Scene) -> int:
    """0 if everything that is shown holds; 1 with every reason otherwise."""
    facts = run_facts(seen, scene)
    problems = list(_checked(console, seen, scene, facts))
    summary(console, facts)
    for problem in problems:
        console.print(Text(problem, style="red"))
    return 1 if problems else 0


def _checked(console: Console, seen: Sighting, scene: Scene, facts: dict[str, str]) -> Iterator[str]:
    """Adds what there is to `facts`, and yields what does not hold."""
    document = seen.run.document
    if document.get("state") != "succeeded":
        yield f"The run ended {document.get('state')}: {document.get('failure')}"
    if seen.study is None:
        return
    best = (document.get("tuning") or {}).get("best_trial") or {}
    yield from disagreements(document, seen.study)
    if best.get("model_uri"):
        values = ", ".join(f"{name} {shown(value)}" for name, value in best["parameters"].items())
        facts["Best trial"] = f"{best['id']}: {best['metric']} {number(best['value'])} with {values}"
        try:
            facts |= model_facts(console, best["model_uri"], scene)
        except (ExportDamaged, OSError) as damage:
            yield str(damage)
    facts["Page"] = str(_page(seen, seen.study, scene.state / "study.html"))


def _page(seen: Sighting, study: Study, path: Path) -> Path:
    """Write the study's page, as `trainmaster study RUN --html` does."""
    # Imports the templates' engine, which no other demo needs.
    from trainmaster.web.study.file import study_file

    tuning = tuning_with(
        study, state=seen.job_state or "", has_ended=seen.job_ended_at is not None, run=seen.run
    )
    path.write_text(study_file(tuning, at=seen.at), encoding="utf-8")
    return path


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
