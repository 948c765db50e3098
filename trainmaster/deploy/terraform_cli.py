"""Runs Terraform on a copy of its configuration, because an installed package may be read-only.

The copy is `.trainmaster/deploy/<project>-<region>[-<name>]/` in the current folder. It can be deleted at any time: the state is in
the deployment's state bucket, and the settings are in SETTINGS, beside `.trainmaster`.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.client.deployment import deployment_document
from trainmaster.deploy.names import SETTINGS, Names, policy_keys, shipped_policy
from trainmaster.deploy.preflight import PreflightResult
from trainmaster.deploy.stage import stage
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT
from trainmaster.resources import DEPLOY, TOPOLOGY, parse_topology

WORK = Path(".trainmaster") / "deploy"
OLDEST = (1, 7)
LOCK = ".terraform.lock.hcl"
_READ_BY_TERRAFORM = ("topology.yaml", "permissions.yaml", "log_sink.filter")


class TerraformFailed(Exception):
    """A Terraform command failed; the message ends with its error output, unless that was printed already."""


def version_fault() -> str | None:
    """Why this machine's Terraform cannot be used; None if it can."""
    wanted = f"Terraform {OLDEST[0]}.{OLDEST[1]} or newer is needed, https://developer.hashicorp.com/terraform/install"
    try:
        ran = subprocess.run(
            ["terraform", "version", "-json"], capture_output=True, text=True, timeout=60, check=False
        )
        version = str(json.loads(ran.stdout)["terraform_version"])
    except FileNotFoundError:
        return f"terraform is not on PATH: {wanted}"
    except (ValueError, KeyError, subprocess.TimeoutExpired) as fault:
        return f"`terraform version` did not print a version ({fault!r}): {wanted}"
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    return None if found >= OLDEST else f"terraform {version} is too old: {wanted}"


@dataclass(frozen=True, kw_only=True)
class Terraform:
    """Terraform on the configuration of one deployment."""

    names: Names
    folder: Path

    def init(self) -> None:
        """Install the providers and connect to the state's bucket. With a lock file, providers must match its checksums.

        Raises:
            TerraformFailed: as `run`.
        """
        locked = ["-lockfile=readonly"] if (self.folder / LOCK).is_file() else []
        backend = f"-backend-config=bucket={self.names.state_bucket}"
        self.run("init", "-input=false", "-reconfigure", *locked, backend)

    def run(self, *words: str) -> None:
        """Run a command with its output on the terminal.

        Raises:
            TerraformFailed: the command failed.
        """
        self._run(*words, capture=False)

    def addresses(self) -> Sequence[str]:
        """The address of every resource in the state.

        Raises:
            TerraformFailed: the state cannot be read.
        """
        return self._run("state", "list", capture=True).splitlines()

    def variables(self, clearance: PreflightResult, *, delete_buckets: bool = False) -> list[str]:
        """Options for the settings file, if there is one, and for the variables that settings cannot change."""
        settings = [f"-var-file={SETTINGS.absolute()}"] if SETTINGS.is_file() else []
        return [
            *settings,
            f"-var=project={self.names.project}",
            f"-var=region={self.names.region}",
            f"-var=deployment={self.names.deployment}",
            *(
                f"-var={name}={json.dumps(value)}"
                for name, value in vars(clearance).items()
                if name.startswith(("kept_", "foreign_"))
            ),
            f"-var=teams={json.dumps(self.names.teams)}",
            f"-var=notify={json.dumps(self.names.notify)}",
            f"-var=policy_keys={json.dumps(sorted(policy_keys(shipped_policy())))}",
            f"-var=delete_buckets={json.dumps(delete_buckets)}",
        ]

    def _run(self, *words: str, capture: bool) -> str:
        command = ["terraform", f"-chdir={self.folder}", *words]
        ran = subprocess.run(command, capture_output=capture, text=True, check=False)
        if ran.returncode != 0:
            said = ran.stderr.strip() if capture else "its output is above"
            raise TerraformFailed(f"terraform {words[0]} exited with status {ran.returncode}: {said}")
        return ran.stdout or ""


def terraform_for(names: Names, configuration: Path = DEPLOY / "terraform") -> Terraform:
    """Terraform on a fresh copy of the configuration and the functions' source; installed providers are kept."""
    work = WORK / f"{names.project}-{names.region}{names.deployment and f'-{names.deployment}'}"
    folder = work / "terraform"
    for old in folder.rglob("*.tf"):
        old.unlink()
    # A lock file that an earlier `init` created here would reject the versions of another release.
    (folder / LOCK).unlink(missing_ok=True)
    ignored = shutil.ignore_patterns(".terraform", "*.tfvars")
    shutil.copytree(configuration, folder, ignore=ignored, dirs_exist_ok=True)
    for name in _READ_BY_TERRAFORM:
        shutil.copy(DEPLOY / name, work)
    stage(work / "functions")
    place = {"project": names.project, "region": names.region}
    published = deployment_document(
        parse_topology(TOPOLOGY, **place, deployment=names.deployment),
        **place,
        policy=(work / "functions" / "policy.yaml").read_bytes(),
        prices=(work / "functions" / "prices.yaml").read_bytes(),
    )
    (work / DEPLOYMENT_OBJECT).write_text(json.dumps(published, indent=1))
    return Terraform(names=names, folder=folder)
