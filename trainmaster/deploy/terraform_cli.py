"""Terraform, run in trainmaster/deploy/terraform with the deployment's own variables."""

import json
import re
import subprocess
from collections.abc import Sequence

from trainmaster.deploy.names import Names
from trainmaster.deploy.preflight import Clearance
from trainmaster.resources import DEPLOY

FOLDER = DEPLOY / "terraform"
OLDEST = (1, 7)


class TerraformFailed(Exception):
    """A command ended with an error, which it has written itself."""


def version_fault() -> str | None:
    """Why the Terraform of this machine cannot be used; None if it can."""
    wanted = f"Terraform {OLDEST[0]}.{OLDEST[1]} or newer is needed, https://developer.hashicorp.com/terraform/install"
    try:
        ran = subprocess.run(
            ["terraform", "version", "-json"], capture_output=True, text=True, timeout=60, check=False
        )
        version = str(json.loads(ran.stdout)["terraform_version"])
    except FileNotFoundError:
        return f"there is no terraform on PATH: {wanted}"
    except (ValueError, KeyError, subprocess.TimeoutExpired) as fault:
        return f"`terraform version` gave no version ({fault!r}): {wanted}"
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    return None if found >= OLDEST else f"terraform {version} is too old: {wanted}"


def variables(names: Names, clearance: Clearance, *, delete_buckets: bool = False) -> list[str]:
    """What the configuration must be told; settings of your own go into a file *.auto.tfvars beside it."""
    return [
        f"-var=project={names.project}",
        f"-var=region={names.region}",
        f"-var=kept_buckets={json.dumps(clearance.kept_buckets)}",
        f"-var=foreign_topics={json.dumps(clearance.foreign_topics)}",
        f"-var=delete_buckets={json.dumps(delete_buckets)}",
    ]


def run(*words: str) -> None:
    """Run it where everyone sees what it says.

    Raises:
        TerraformFailed: it ended with an error.
    """
    ran = subprocess.run(["terraform", f"-chdir={FOLDER}", *words], check=False)
    if ran.returncode != 0:
        raise TerraformFailed(f"terraform {words[0]} ended with {ran.returncode}; what it said is above")


def init(names: Names) -> None:
    """Get the providers, and the state from its bucket.

    Raises:
        TerraformFailed: as `run`.
    """
    run("init", "-input=false", "-reconfigure", f"-backend-config=bucket={names.state_bucket}")


def addresses() -> Sequence[str]:
    """Every resource that the state knows.

    Raises:
        TerraformFailed: the state cannot be read.
    """
    ran = subprocess.run(
        ["terraform", f"-chdir={FOLDER}", "state", "list"], capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        raise TerraformFailed(f"terraform state list ended with {ran.returncode}: {ran.stderr.strip()}")
    return ran.stdout.splitlines()
