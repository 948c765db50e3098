"""The plan that Terraform itself makes of trainmaster/deploy/topology.yaml and trainmaster/deploy/permissions.yaml, without a provider or a cloud."""

import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from typing import Any

from tests.deploy.hcl import TERRAFORM

PROJECT, REGION, NUMBER = "parity-project", "europe-west4", "123456789012"
NOTIFY: dict[str, dict[str, Any]] = {
    "ops": {"secret": "hmac"},
    "chat": {"secret": "hmac"},
    "mail": {"to": ["a@example.com", "b@example.com"]},
}
"""Receivers of notices, two with the same secret."""
DATA_BUCKETS = ["elsewhere-data"]
"""Of another project."""
TERRAFORM_BINARY = shutil.which("terraform")


@cache
def plan(*teams: str, ci: str = "null", deployment: str = "") -> dict[str, Any]:
    """The locals of trainmaster/deploy/terraform/plan for PROJECT, REGION and NUMBER, and the deployment of this name.

    Of `teams`, each has a group `<team>@example.com` of members and its own topic. `ci`: the variable, as JSON.

    Raises:
        AssertionError: Terraform refused the configuration; with what it said.
    """
    names = [
        "topology", "topics", "buckets", "builds_bucket", "ledger_days", "repository", "functions", "triggers", "subscriptions", "sinks",
        "schedules", "accounts", "agents", "custom_roles", "grants", "folders", "printed", "metrics", "alerts", "dashboard",
        "notices", "notice_addresses", "ci_pools", "ci_principals", "metric_folder", "title", "data_grants",
    ]  # fmt: skip
    settings = {
        team: {"members": [f"group:{team}@example.com"], "requests_topic": f"trainmaster-requests-{team}"}
        for team in teams
    }
    wanted = ", ".join(f"{name} = local.{name}" for name in names)
    asked = subprocess.run(
        [
            "terraform",
            "console",
            # It locks its state, even without one; another test may ask at the same time.
            f"-state={tempfile.gettempdir()}/none.tfstate",
            f"-var=project={PROJECT}",
            f"-var=region={REGION}",
            f"-var=deployment={deployment}",
            f"-var=project_number={NUMBER}",
            f"-var=teams={json.dumps(settings)}",
            f"-var=notify={json.dumps(NOTIFY)}",
            f"-var=ci={ci}",
            f"-var=data_buckets={json.dumps(DATA_BUCKETS)}",
        ],
        input=f"jsonencode({{{wanted}}})",
        cwd=TERRAFORM / "plan",
        env={**os.environ, "CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr
    # The console quotes a text, and the text is JSON.
    read: dict[str, Any] = json.loads(json.loads(asked.stdout))
    return read
