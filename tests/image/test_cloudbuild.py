"""cloudbuild.yaml from its first step to its last: new functions on the stack, and a run that trains with the new image.

TRAINMASTER_TEST_CONTAINERS=1 .venv/bin/python -m pytest tests/image/test_cloudbuild.py

Real are every step, gcloud, the builder, the registry, and the stack that takes functions, notifications and the run.
The step `test` installs the locked packages into an empty environment, then checks and tests the uploaded tree. That
takes more than ten minutes, so it runs only with the variable; tests/repo/test_uploaded.py is its short form.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.functions_api import FunctionsApi, functions_api
from tests.deploy.test_terraform_permissions import may
from tests.e2e.project import ENDED, Project, running_project
from tests.repo.uploaded import copy_uploaded
from trainmaster.deploy.stage import stage
from trainstack.stack.state import client_variables_path

from .cloud_build import Worker, loaded
from .conftest import REQUIRED, needs
from .figures import DEADLINE_S, add_figures, request_for
from .stack_functions import StackFunctions, point, read_files
from .step_programs import HOST, add_gcloud, add_python, local_worker

pytestmark = [
    pytest.mark.slow(seconds=150),
    needs("runtime", "registry", "gcloud"),
    pytest.mark.timeout(7200),
]

ID = "image-cloudbuild"
REPOSITORY = f"{HOST}/{ID}/trainmaster/trainer"
RULE = "rules/image.json"
UNFINISHED = """

def on_image_pushed(event):
    raise NotImplementedError("only a later source takes pushed images")
"""


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    """A link to functions of an earlier commit, which cannot start runs of pushed images."""
    earlier, link = tmp_path / "earlier", tmp_path / "functions"
    stage(earlier)
    with (earlier / "main.py").open("a") as main:
        main.write(UNFINISHED)
    point(link, earlier)
    return link


@pytest.fixture
def project(tmp_path: Path, functions: Path) -> Iterator[Project]:
    arguments = ("--runtime", "container", "--registry", "--functions", str(functions), "--tick-s", "2")
    with running_project(tmp_path / "state", *arguments, project=ID) as running:
        yield running


@pytest.fixture
def deployments(project: Project, functions: Path) -> Iterator[FunctionsApi]:
    granted = frozenset(permission for permission, _ in may("build"))
    with functions_api(granted, deploy=StackFunctions(project=project, link=functions).deploy) as api:
        yield api


@pytest.fixture
def worker(
    tmp_path: Path, project: Project, deployments: FunctionsApi, base: str, trainer_image: str
) -> Iterator[Worker]:
    """A worker with the sources that `gcloud builds submit` uploads.

    `trainer_image` has built the layer of the packages, which takes longer than all steps.
    """
    with local_worker(tmp_path, project, base=base) as made:
        add_python(made.shims)
        add_gcloud(
            made.shims, variables=client_variables_path(project.state, "gcloud"), more=deployments.environment
        )
        copy_uploaded(made.workspace, tmp_path / "gcloud")
        yield made


def test_a_build_deploys_the_functions_and_a_rule_trains_with_its_image(
    project: Project, deployments: FunctionsApi, worker: Worker, functions: Path, tmp_path: Path
) -> None:
    add_figures(project, tmp_path / "figures")
    rule = {
        "when": [{"new_image": {"repository": REPOSITORY, "tag": "latest"}}],
        "request": request_for(project, "${image.uri}"),
    }
    project.upload(RULE, json.dumps(rule))
    project.eventually(lambda: accepted(project), "the rule is accepted")

    build = loaded()
    ids = [step["id"] for step in build["steps"]]
    worker.run(build, *(ids if os.environ.get(REQUIRED) == "1" else ids[ids.index("test") + 1 :]))

    assert set(deployments.updated) == set(build["substitutions"]["_FUNCTIONS"].split())
    built = read_files(worker.workspace / "build" / "functions")
    deployed = StackFunctions(project=project, link=functions)
    for function in deployments.updated:
        source = deployed.source_of(function)
        assert source is not None
        assert read_files(source) == built, function

    digest = (worker.output / "output").read_text().strip()
    assert digest == (worker.workspace / "trainer-image.txt").read_text().strip()
    record = project.eventually(lambda: ended_run(project), "the run ends", deadline_s=DEADLINE_S)
    assert record["state"] == "succeeded", record
    (job,) = project.jobs(record["run_id"])
    assert {pool.container_spec.image_uri for pool in job.job_spec.worker_pool_specs} == {digest}
    manifest = project.document(project.models, f"figures/{record['run_id']}/model/export.json")
    assert manifest is not None
    assert record["model"]["metrics"] == manifest["metrics"]

    # Two tags and the step publish-image: the same digest fires no rule again.
    project.eventually(lambda: len(acknowledged(project)) == 3, "every notification of the image is taken")
    assert list(project.records()) == [record["run_id"]]


def accepted(project: Project) -> bool:
    status = project.status(RULE)
    assert status is None or status["state"] == "accepted", status
    return status is not None


def ended_run(project: Project) -> dict[str, Any] | None:
    return next((record for record in project.records().values() if record["state"] in ENDED), None)


def acknowledged(project: Project) -> list[Any]:
    """The requests to on-image-pushed that were answered with success, from the platform's request log."""
    name = f"projects/{ID}/logs/run.googleapis.com%2Frequests"
    which = f'logName="{name}" AND resource.labels.service_name="on-image-pushed" AND httpRequest.status=200'
    return list(project.logging.list_entries(filter_=which))
