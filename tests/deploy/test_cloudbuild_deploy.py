"""cloudbuild.yaml's step deploy-functions, run by the real gcloud with what its account is granted."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.functions_api import FunctionsApi, functions_api
from tests.deploy.test_terraform_permissions import ROLES, may
from tests.image.cloud_build import GIVEN, Worker, loaded, substitutions
from trainmaster.deploy.stage import stage

pytestmark = [
    pytest.mark.slow(seconds=15),
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not on PATH"),
]

GRANTED = frozenset(permission for permission, _ in may("build"))
NOT_NEEDED = {"serviceusage.services.get"}
"""What gcloud requests but does not need: googlecloudsdk/api_lib/functions/api_enablement.py."""
ACCOUNT = (
    f"projects/{GIVEN['PROJECT_ID']}/serviceAccounts/tm-build@{GIVEN['PROJECT_ID']}.iam.gserviceaccount.com"
)


def deployed(api: FunctionsApi, folder: Path) -> None:
    """Run the step on a staged source, for two functions.

    Raises:
        subprocess.CalledProcessError: it failed; `stdout` has what gcloud said.
    """
    build = loaded()
    stage(folder / "build" / "functions")
    token = folder / "token"
    token.write_text("nobody")
    shared = api.environment | {"CLOUDSDK_CONFIG": str(folder), "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token)}
    step = next(each for each in build["steps"] if each["id"] == "deploy-functions")
    step["env"] += [f"{name}={value}" for name, value in shared.items()]
    worker = Worker(
        workspace=folder,
        output=folder,
        shims=folder,
        values=substitutions(build, _FUNCTIONS="on-tick on-alert"),
    )
    worker.run(build, "deploy-functions")


def test_it_needs_what_its_account_is_granted_and_no_more(tmp_path: Path) -> None:
    with functions_api(GRANTED) as api:
        deployed(api, tmp_path)
    assert set(api.updated) == {"on-tick", "on-alert"}
    assert len(api.sources) == 2
    assert min(len(source) for source in api.sources.values()) > 10_000
    assert {each["buildConfig"]["serviceAccount"] for each in api.updated.values()} == {ACCOUNT}
    assert api.asked - NOT_NEEDED == set(ROLES["trainmaster_sources"]["permissions"])


def test_a_function_that_cannot_be_deployed_fails_the_build_and_keeps_no_other_from_its_source(
    tmp_path: Path,
) -> None:
    with (
        functions_api(GRANTED, frozenset({"on-tick"})) as api,
        pytest.raises(subprocess.CalledProcessError) as failed,
    ):
        deployed(api, tmp_path)
    assert "on-tick: ERROR: " in failed.value.stdout
    assert set(api.updated) == {"on-alert"}
