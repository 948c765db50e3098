"""Two teams on one stack: each team's jobs try to reach the other's models, data, champion and folders."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from trainmaster.deploy.stage import stage
from trainstack.sandbox.probe import obstacle
from trainstack.stack.images import provide

from .project import Project, request, running_project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(obstacle()), reason="this machine does not allow namespaces"),
]

TEAMS = ("vision", "speech")
TRAIN = """
import json, os
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import storage

name, own, other = (os.environ[key] for key in ("RIVAL_PROJECT", "RIVAL_OWN", "RIVAL_OTHER"))
root = os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")
objects = storage.Client(project=name)
inbox, ledger, models, data, champions = (
    objects.bucket(f"{name}-{role}") for role in ("inbox", "ledger", "models", "data", "champions")
)
run = json.loads(os.environ.get("RIVAL_RUN", "{}"))

def read(path):
    with open(f"{root}/{path}", "rb") as file:
        return file.read()

def write(path):
    with open(f"{root}/{path}", "wb") as file:
        file.write(b"taken")

attempts = {
    "read its model": lambda: models.blob(run["weights"]).download_as_bytes(),
    "read its metrics": lambda: models.blob(run["metrics"]).download_as_bytes(),
    "list its models": lambda: list(objects.list_blobs(models, prefix=f"{other}/")),
    "list all models": lambda: list(objects.list_blobs(models)),
    "replace its model": lambda: models.blob(run["weights"]).upload_from_string("taken"),
    "replace its metrics": lambda: models.blob(run["metrics"]).upload_from_string("{}"),
    "delete its model": lambda: models.blob(run["weights"]).delete(),
    "read its champion": lambda: champions.blob(run["champion"]).download_as_bytes(),
    "replace its champion": lambda: champions.blob(run["champion"]).upload_from_string("taken"),
    "change its champion's document": lambda: ledger.blob(f"champions/{other}/rival.json").upload_from_string("{}"),
    "read its data": lambda: data.blob(f"{other}/train.csv").download_as_bytes(),
    "replace its data": lambda: data.blob(f"{other}/train.csv").upload_from_string("taken"),
    "drop a request": lambda: inbox.blob(f"requests/{other}/forged.yaml").upload_from_string("a: b"),
    "drop a rule": lambda: inbox.blob(f"rules/{other}/forged.yaml").upload_from_string("a: b"),
    "drop a request of its own team": lambda: inbox.blob(f"requests/{own}/forged.yaml").upload_from_string("a: b"),
    "replace its own champion": lambda: champions.blob(run["own_champion"]).upload_from_string("taken"),
    "read its model as a file": lambda: read(f"{name}-models/{run['weights']}"),
    "replace its model as a file": lambda: write(f"{name}-models/{run['weights']}"),
    "drop a request as a file": lambda: write(f"{name}-inbox/requests/{other}/forged.json"),
    "read its data as a file": lambda: read(f"{name}-data/{other}/train.csv"),
    "read its own data": lambda: data.blob(f"{own}/train.csv").download_as_bytes(),
    "read its own champion": lambda: champions.blob(run["own_champion"]).download_as_bytes(),
}
found = {}
for what, attempt in attempts.items() if run else ():
    try:
        attempt()
        found[what] = "done"
    except GoogleAPICallError as refused:
        found[what] = str(int(refused.code))
    except OSError as refused:
        found[what] = type(refused).__name__
place = os.environ["AIP_MODEL_DIR"].removeprefix("gs://")
os.makedirs(f"{root}/{place}", exist_ok=True)
for file, content in (
    ("weights.safetensors", own),
    ("metrics.json", json.dumps({"accuracy": 0.5})),
    ("found.json", json.dumps(found)),
):
    with open(f"{root}/{place}{file}", "w") as out:
        out.write(content)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("teams")
    stage(folder / "functions")
    policy = folder / "functions" / "policy.yaml"
    policy.write_text(
        f"{policy.read_text()}\nteams: {{vision: {{}}, speech: {{requests_topic: requests-speech}}}}\n"
    )
    arguments = ("--functions", str(folder / "functions"), "--tick-s", "2")
    with running_project(folder / "state", *arguments, project="e2e-teams") as running:
        image = folder / "image"
        image.mkdir()
        (image / "Dockerfile").write_text(
            'FROM python:3.11-slim\nWORKDIR /app\nCOPY train.py .\nENTRYPOINT ["python", "train.py"]\n'
        )
        (image / "train.py").write_text(TRAIN)
        provide(running.state, {f"us-central1-docker.pkg.dev/{running.id}/trainmaster/rival": image})
        yield running


def trained(project: Project, team: str, file: str, run: dict[str, str]) -> dict[str, Any]:
    """The finished record of the team's run of `rival`, whose program knows `run`."""
    (other,) = set(TEAMS) - {team}
    env = {"RIVAL_PROJECT": project.id, "RIVAL_OWN": team, "RIVAL_OTHER": other, "RIVAL_RUN": json.dumps(run)}
    terms = {"metric": "accuracy", "goal": "maximize"}
    document = json.loads(request(project.id, model_name="rival", env=env, champion=terms))
    image = f"us-central1-docker.pkg.dev/{project.id}/trainmaster/rival:1"
    name = f"requests/{team}/{file}.json"
    project.upload(name, json.dumps(document | {"image": image}))
    status = project.final_status(name)
    assert status["state"] == "succeeded", status
    return project.finished_record(status["run_id"])


def object_name(uri: str) -> str:
    return uri.removeprefix("gs://").partition("/")[2]


def test_no_teams_job_reads_or_changes_what_the_other_team_has(project: Project) -> None:
    for team in TEAMS:
        data = project.storage.bucket(f"{project.id}-data").blob(f"{team}/train.csv")
        data.upload_from_string(f"{team}'s")
    first = {team: trained(project, team, "first", {}) for team in TEAMS}
    served: dict[str, str] = {}
    for team in TEAMS:
        record = first[team]
        assert record["request"]["output_uri"].startswith(f"gs://{project.models}/{team}/rival/")
        assert record["source"]["team"] == team
        champion = project.document(project.ledger, f"champions/{team}/rival.json")
        assert champion is not None
        assert champion["current"]["run_id"] == record["run_id"]
        served[team] = object_name(champion["current"]["model_uri"]) + "weights.safetensors"
        assert served[team].startswith(f"{team}/rival/")
    for team, other in (TEAMS, TEAMS[::-1]):
        place = object_name(first[other]["model"]["uri"])
        run = {
            "weights": f"{place}weights.safetensors",
            "metrics": f"{place}metrics.json",
            "champion": served[other],
            "own_champion": served[team],
        }
        record = trained(project, team, "rival", run)
        found = project.document(project.models, f"{object_name(record['model']['uri'])}found.json")
        assert found is not None
        assert {found.pop(what) for what in ("read its own data", "read its own champion")} == {"done"}
        by_files = {found.pop(what) for what in list(found) if what.endswith("as a file")}
        assert by_files <= {"FileNotFoundError", "PermissionError", "OSError"}, by_files
        assert len(found) == 16
        assert set(found.values()) == {"403"}, found
    champions = project.storage.bucket(f"{project.id}-champions")
    for team in TEAMS:
        assert champions.blob(served[team]).download_as_bytes() == team.encode()
        assert (
            project.storage.bucket(project.models)
            .blob(f"{object_name(first[team]['model']['uri'])}weights.safetensors")
            .download_as_bytes()
            == team.encode()
        )
        assert project.status(f"requests/{team}/forged.json") is None
