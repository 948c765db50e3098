"""The end of the retraining demo: checks its claims against the services, and traces the champion's lineage."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from trainmaster.cli.demo.model import ExportDamaged, local_path, verified_export
from trainmaster.cli.demo.retraining.data import BURST_FILES
from trainmaster.cli.demo.retraining.view import asked_by
from trainmaster.cli.demo.retraining.watch import Document, RetrainSighting
from trainmaster.cli.demo.stage import summary
from trainmaster.cli.watch.live import doing
from trainmaster.client.clients import job_client, storage_client
from trainmaster.client.context import Context
from trainmaster.client.times import moment
from trainmaster.orchestrator.core.notices.notice import CHAMPION_PROMOTED, RUN_PREFIX, RUN_TYPES
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.sizes import MAX_MANIFEST_BYTES

BURSTS = 2
SHOWN = ("event", "rule", "job", "image", "export")
"""Stations of the champion's lineage in the summary; all are checked."""


def report(
    console: Console, seen: RetrainSighting, *, target: Context, state: Path, rule_generation: int
) -> int:
    """0 if every claim holds; 1 with each that does not."""
    problems = [*course(seen), *(f"a notice did not arrive: {missing}" for missing in missing_notices(seen))]
    current = seen.champion.get("current")
    if current is not None and not problems:
        with doing(console, "Tracing the champion's lineage back to its data"):
            walked = list(way_back(seen, rule_generation))
            walked += _from_the_services(current["lineage"], target, state)
        problems += [problem for _, _, problem in walked if problem]
        found = {station: fact for station, fact, _ in walked}
        lineage = {station.capitalize(): found[station] for station in SHOWN if station in found}
        summary(console, _results(seen) | lineage)
    for problem in problems:
        console.print(Text(problem, style="red"), soft_wrap=True)
    return 1 if problems else 0


def _results(seen: RetrainSighting) -> dict[str, str]:
    before, now = seen.champion["history"]
    verdict = seen.verdicts[-1]
    states = sum(notice["type"].startswith(RUN_PREFIX) for notice in seen.notices)
    promotions = sum(notice["type"] == CHAMPION_PROMOTED for notice in seen.notices)
    return {
        "Runs": f"{BURSTS} bursts of {BURST_FILES} files started {BURSTS} runs: exactly one each",
        "Champion before": f"{before['run_id']}, val_accuracy {before['value']:.3f}",
        "Champion now": f"{now['run_id']}, val_accuracy {now['value']:.3f}",
        "Not promoted": f"{verdict['run_id']}: {verdict['reason']}",
        "Notices": f"{states} states of {len(seen.runs)} runs, {promotions} promotions",
    }


def course(seen: RetrainSighting) -> Iterator[str]:
    """What did not go as the demo says: one run a burst, the first one's model promoted, the second one's not."""
    fired = [run for run in seen.runs if run["source"]["kind"] == "rule"]
    firings = [run["source"]["firing"] for run in fired]
    if firings != list(range(1, BURSTS + 1)) or len(seen.runs) != BURSTS + 1:
        yield f"{BURSTS} bursts should have started one run each; the runs are: " + ", ".join(
            f"{run['run_id']} by {asked_by(run)}" for run in seen.runs
        )
    for run in fired:
        files = run["request"]["document"]["labels"]["files"]
        if files != str(BURST_FILES):
            yield f"{run['run_id']} was started for {files} files, not {BURST_FILES}"
    expected = [True, True, False]
    found = [verdict["promoted"] for verdict in seen.verdicts]
    if found != expected or [verdict["run_id"] for verdict in seen.verdicts] != [
        run["run_id"] for run in seen.runs
    ]:
        said = "; ".join(f"{verdict['run_id']}: {verdict['reason']}" for verdict in seen.verdicts)
        yield f"the first two runs should have been promoted and the third not; the verdicts are: {said}"
    current = seen.champion.get("current") or {}
    if fired and current.get("run_id") != fired[0]["run_id"]:
        yield f"the champion should be {fired[0]['run_id']}; it is {current.get('run_id')}"


def missing_notices(seen: RetrainSighting) -> Iterator[str]:
    """Every state of a run, and every promotion, whose notice has not arrived."""
    arrived = {(notice["type"], notice["id"]) for notice in seen.notices}
    for run in seen.runs:
        for step in run["history"]:
            state = RunState(step["state"])
            if (RUN_TYPES[state], f"{run['run_id']}/{state}") not in arrived:
                yield f"{run['run_id']} {state}"
    model_name = seen.champion.get("model_name")
    for reign in seen.champion.get("history", ()):
        if (CHAMPION_PROMOTED, f"champions/{model_name}/{reign['number']}") not in arrived:
            yield f"promotion {reign['number']}"


Station = tuple[str, str, str]
"""What was checked, what was found, and what is wrong with it; empty when nothing is."""


def way_back(seen: RetrainSighting, rule_generation: int) -> Iterator[Station]:
    """The champion's way as its own lineage tells it: from the last file of the burst to the rule and the run."""
    current, burst = seen.champion["current"], seen.deliveries[0]
    lineage = current["lineage"]
    event, _, at = lineage["event_id"].partition("/")
    done = f"{burst.done_uri} created {burst.done_at}"
    yield _station(
        "event", f"{lineage['event_id']}: {done}", (event, moment(at)), ("new_data", burst.done_at)
    )
    found = (lineage.get("request_generation"), lineage.get("firing"))
    yield _station(
        "rule",
        f"{lineage.get('request_uri')}#{found[0]}, firing {found[1]}",
        found,
        (rule_generation, 1),
    )
    run = next(run for run in seen.runs if run["run_id"] == current["run_id"])
    yield _station("run", current["run_id"], lineage.get("job_name"), run["job"]["name"])
    named = [arg for arg in run["request"]["document"]["args"] if arg.startswith("--data_dir=")]
    yield _station("trained on", " ".join(named), named, [f"--data_dir={burst.prefix}"])


def _from_the_services(lineage: Document, target: Context, state: Path) -> Iterator[Station]:
    """The rest of the way: the job as Vertex AI tells it, the export as it lies in the bucket."""
    jobs = job_client(project=target.project, region=target.region, vertex_host=target.vertex_host)
    job: Any = jobs.get_custom_job(name=lineage["job_name"])
    yield _station("job", f"{job.name} {job.state.name}", job.state.name, "JOB_STATE_SUCCEEDED")
    image = job.job_spec.worker_pool_specs[0].container_spec.image_uri
    yield _station("image", image, lineage["image"], image)
    uri = lineage["manifest_uri"]
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    content = storage_client(target).bucket(bucket).blob(name).download_as_bytes(end=MAX_MANIFEST_BYTES)
    if len(content) > MAX_MANIFEST_BYTES:
        yield "export", uri, f"{uri} has more than {MAX_MANIFEST_BYTES} bytes"
        return
    sha256 = hashlib.sha256(content).hexdigest()
    try:
        export = verified_export(local_path(uri, state).parent)
    except ExportDamaged as damage:
        yield "export", uri, str(damage)
        return
    dataset = export.manifest["dataset"]
    found = (dataset["name"], dataset["version"], dataset["train_split"])
    recorded = (lineage.get("dataset"), lineage.get("dataset_version"), lineage.get("train_split"))
    yield _station("data set", f"{found[0]} {found[1]}, split {found[2]}", recorded, found)
    said = f"{uri} sha256 {sha256}, and its {len(export.manifest['files'])} files match"
    yield _station("export", said, lineage.get("manifest_sha256"), sha256)


def _station(title: str, shown: str, recorded: object, expected: object) -> Station:
    return title, shown, "" if recorded == expected else f"{title}: found {recorded}, expected {expected}"
