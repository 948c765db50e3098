"""Terraform itself sets the dead-letter topic of each trigger's subscription; only the trigger and gcloud are simulated."""

import marshal
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.cloud import FAKES
from tests.deploy.hcl import TERRAFORM
from tests.deploy.plan import NUMBER, PROJECT, REGION, TERRAFORM_BINARY, plan

pytestmark = pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")

ROOT_MODULE = """
variable "project" {{ type = string }}

module "plan" {{
  source          = "./plan"
  project         = var.project
  region          = "{region}"
  project_number  = "{number}"
  watched_buckets = ["elsewhere.example.com"]
}}
"""


def piece(text: str, beginning: str) -> str:
    """A top-level block of a formatted file, from its first line to its closing brace."""
    start = text.index(beginning)
    return text[start : text.index("\n}\n", start) + 3]


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, dict[str, str]]:
    """The flags that gcloud was given, by the subscription's trigger, after the first `terraform apply`."""
    triggers = (TERRAFORM / "triggers.tf").read_text()
    block = piece(triggers, "locals {") + piece(triggers, 'resource "terraform_data" "retries"')
    block = re.sub(r"\n  # Dead letters need.*?\n  depends_on = .*?\]\n", "\n", block, flags=re.DOTALL)
    block = block.replace(
        "google_eventarc_trigger.trigger[each.key].transport[0].pubsub[0].subscription",
        f'"projects/{PROJECT}/subscriptions/${{each.key}}"',
    ).replace("google_eventarc_trigger.trigger[each.key].uid", '"uid"')
    assert "google_" not in block
    folder = copied(tmp_path)
    module = ROOT_MODULE.format(region=REGION, number=NUMBER)
    (folder / "main.tf").write_text(module + block)
    (tmp_path / "cloud.value").write_bytes(marshal.dumps({"login": True}))
    environment = {
        **os.environ,
        "PATH": f"{only_gcloud(tmp_path)}{os.pathsep}{os.environ['PATH']}",
        "FAKE_CLOUD": str(tmp_path),
        "TF_CLI_CONFIG_FILE": os.devnull,
        "CHECKPOINT_DISABLE": "1",
    }
    for words in (["init"], ["apply", "-auto-approve", f"-var=project={PROJECT}"]):
        ran = subprocess.run(
            [str(TERRAFORM_BINARY), *words, "-input=false", "-no-color"],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
    found = {}
    for line in (tmp_path / "asked").read_text().splitlines():
        words = line.split()
        assert words[:4] == ["gcloud", "pubsub", "subscriptions", "update"]
        name = words[4].removeprefix(f"projects/{PROJECT}/subscriptions/")
        found[name] = dict(word.removeprefix("--").split("=", 1) for word in words[5:])
    return found


def copied(folder: Path) -> Path:
    """A copy of the plan's module with the files that it reads, for the test's root module."""
    deploy = folder / "deploy"
    shutil.copytree(TERRAFORM / "plan", deploy / "terraform" / "plan")
    for path in TERRAFORM.parent.iterdir():
        if path.suffix in (".yaml", ".filter"):
            shutil.copy(path, deploy)
    return deploy / "terraform"


def only_gcloud(folder: Path) -> Path:
    """A folder for PATH with the script for gcloud; terraform must be the real one."""
    (folder / "bin").mkdir()
    (folder / "bin" / "gcloud").symlink_to(FAKES / "gcloud")
    return folder / "bin"


def test_every_subscription_gets_the_policy_of_its_function(asked: dict[str, dict[str, str]]) -> None:
    assert len(asked) == len(plan()["functions"]) + 1
    for trigger, flags in asked.items():
        name = trigger if trigger in plan()["functions"] else "on-data-arrived"
        function = plan()["functions"][name]
        policy = function["subscription"]
        expected = {
            "project": PROJECT,
            "ack-deadline": str(policy["ack_deadline_s"]),
            "expiration-period": "never",
        }
        if function["retry"]:
            expected |= {
                "min-retry-delay": f"{policy['min_pause_s']}s",
                "max-retry-delay": f"{policy['max_pause_s']}s",
                "message-retention-duration": f"{policy['retention_s']}s",
                "dead-letter-topic": f"projects/{PROJECT}/topics/{policy['dead_letter_topic']}",
                "max-delivery-attempts": str(policy["max_attempts"]),
            }
        assert flags == expected
