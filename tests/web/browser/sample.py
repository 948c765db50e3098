"""A project in which every page of the console has something to show: one run, rule, champion, letter of each kind."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.e2e.project import ENDED, ROOT, Project

IMAGE = Path(__file__).parent / "image"
PROJECT_ID = "browser-tests"
ATTEMPTS = 5
T4 = {"machine": "n1-standard-4", "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}}
CHIEF = {"chief": {"machine": "n1-standard-4"}}
PAIR = {**CHIEF, "workers": {"machine": "n1-standard-4", "count": 1}}
TERMS = {"metric": "val_accuracy", "goal": "maximize"}
HOSTILE = "<img src=x onerror=alert(1)>"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The runs of the project by what they show."""

    project: Project
    succeeded: str
    failed: str
    running: str
    waiting: str
    tuned: str
    champion: str
    challenger: str


def image_uri() -> str:
    return f"us-central1-docker.pkg.dev/{PROJECT_ID}/trainmaster/flowers"


def request(*args: str, model_name: str = "flowers", cluster: object = CHIEF, **more: object) -> str:
    """A request for the image, as YAML."""
    document = {
        "model_name": model_name,
        "image": f"{image_uri()}:1",
        "args": list(args),
        "cluster": cluster,
        **more,
    }
    return yaml.safe_dump(document, sort_keys=False)


def topology(folder: Path) -> Path:
    """The deployment's own, but events are dead letters as early as Pub/Sub allows."""
    loaded = yaml.safe_load((ROOT / "trainmaster" / "deploy" / "topology.yaml").read_text())
    for function in loaded["functions"].values():
        if "dead_letter" in function:
            function["dead_letter"]["max_attempts"] = ATTEMPTS
    for sink in loaded["sinks"].values():
        sink["filter_file"] = str(ROOT / "trainmaster" / "deploy" / sink["filter_file"])
    path = folder / "topology.yaml"
    path.write_text(yaml.safe_dump(loaded, sort_keys=False))
    return path


def options(folder: Path) -> tuple[str, ...]:
    """Of `trainmaster up`."""
    return (
        "--topology", str(topology(folder)), "--image", f"{image_uri()}={IMAGE}",
        "--retry-min-s", "0.1", "--retry-max-s", "0.5", "--tick-s", "5", "--console", "write",
    )  # fmt: skip


def filled(project: Project) -> Sample:
    """The project, once every run but the running and the waiting one has ended."""
    put_quota(project, quotas={project.region: {"NVIDIA_TESLA_T4": 0}})
    drop(project, "flowers-gpu", request(cluster={"chief": T4}, priority=80))
    drop(project, "flowers-later", request(cluster={"chief": T4}))
    drop(project, "flowers-broken", request("--fail"))
    drop(
        project,
        "flowers-typo",
        "model_name: Flowers 2\nimage: docker.io/evil/miner\ncluster:\n  chief: {machin: n1-standard-4}\n",
    )
    drop(
        project,
        "flowers-nightly",
        request("--steps=400", "--step-s=0.002", cluster=PAIR, labels={"team": "vision"}),
    )
    drop(project, "flowers-search", request("--step-s=0.005", model_name="flowers-tuned", tuning=TUNING))
    drop(project, "roses-first", request("--rate=0.08", "--units=16", model_name="roses", champion=TERMS))
    drop_rules(project)
    drop(
        project,
        "flowers-long",
        request(
            "--steps=200000",
            "--step-s=0.2",
            model_name="flowers-large",
            cluster=PAIR,
            labels={"team": "vision"},
        ),
    )
    poison(project)
    champion = ended(project, "roses-first")
    drop(project, "roses-second", request("--rate=0.9", model_name="roses", champion=TERMS))
    return Sample(
        project=project,
        succeeded=ended(project, "flowers-nightly"),
        failed=ended(project, "flowers-broken"),
        tuned=ended(project, "flowers-search"),
        champion=champion,
        challenger=ended(project, "roses-second"),
        running=in_state(project, "flowers-long", "running"),
        waiting=in_state(project, "flowers-gpu", "waiting"),
    )


TUNING: dict[str, Any] = {
    "metrics": [{"id": "accuracy", "goal": "maximize"}],
    "parameters": {
        "rate": {"type": "double", "min": 0.001, "max": 1.0, "scale": "log"},
        "units": {"type": "discrete", "values": [16, 32, 64, 128]},
        "optimizer": {"type": "categorical", "values": ["adam", "sgd", "rmsprop"]},
    },
    "max_trials": 8,
    "parallel_trials": 4,
}


def drop_rules(project: Project) -> None:
    data = f"gs://{project.env['TRAINMASTER_DATA_BUCKET']}"
    weekly = {"schedule": {"cron": "0 3 * * 1", "time_zone": "Europe/Amsterdam"}}
    new_data = {"new_data": {"objects": f"{data}/flowers/**", "min_objects": 200, "quiet_s": 3600}}
    drop_rule(project, "flowers-weekly", [weekly, new_data, {"manual": {}}])
    drop_rule(project, "poisoned", [{"manual": {}}])
    project.upload("rules/refused.yaml", "when:\n  - schedule: {cron: every monday}\nrequest: {}\n")
    bucket = project.storage.bucket(project.env["TRAINMASTER_DATA_BUCKET"])
    for number in range(3):
        bucket.blob(f"flowers/{number}.jpg").upload_from_string(b"image")


def drop_rule(project: Project, rule_id: str, when: list[dict[str, Any]]) -> None:
    name = f"rules/{rule_id}.json"
    template = yaml.safe_load(request("--rate=0.05", model_name=rule_id))
    project.upload(name, json.dumps({"when": when, "request": template}))
    status = project.eventually(lambda: project.status(name), f"an answer to {name}")
    assert status["state"] == "accepted", status


def poison(project: Project) -> None:
    """One order that becomes a dead letter: the state of its rule is damaged."""
    project.storage.bucket(project.ledger).blob("rule-state/poisoned.json").upload_from_string("no JSON")
    project.publish("trainmaster-requests", b"fire: {rule: poisoned}")


def put_quota(project: Project, **document: object) -> None:
    answer = httpx.put(f"{project.env['VERTEX_EMULATOR_HOST']}/emulator/v1/quota", json=document, timeout=60)
    assert answer.status_code == httpx.codes.OK, answer.text


def drop(project: Project, name: str, content: str) -> None:
    project.upload(f"requests/{name}.yaml", content)


def ended(project: Project, name: str) -> str:
    """The id of the run of a dropped request, once it has ended and every step after its end is done."""
    status = project.final_status(f"requests/{name}.yaml")
    assert status["state"] in ENDED, status
    return str(project.finished_record(status["run_id"])["run_id"])


def in_state(project: Project, name: str, state: str) -> str:
    """The id of the run, once it is in that state."""

    def found() -> str | None:
        status = project.status(f"requests/{name}.yaml")
        return status["run_id"] if status and status["state"] == state else None

    return project.eventually(found, f"{name} is {state}; now {project.status(f'requests/{name}.yaml')}")
