"""Every name that a deployment takes in a project, from the files that deploy it."""

import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parent
ACCOUNT_PREFIX = "tm-"
METRIC_PREFIX = "trainmaster/"


@dataclass(frozen=True, kw_only=True)
class Names:
    """`buckets` and `topics` by role; `taken` by kind of thing, the kinds of deploy/existing.py."""

    project: str
    region: str
    buckets: Mapping[str, str]
    topics: Mapping[str, str]
    taken: Mapping[str, frozenset[str]]

    @property
    def state_bucket(self) -> str:
        """Where Terraform remembers what it made."""
        return f"{self.project}-terraform"


def names_of(project: str, region: str) -> Names:
    text = (DEPLOY / "topology.yaml").read_text()
    topology: dict[str, Any] = yaml.safe_load(
        string.Template(text).substitute(project=project, region=region)
    )
    table: dict[str, Any] = yaml.safe_load((DEPLOY / "permissions.yaml").read_text())
    functions = frozenset(topology["functions"])
    return Names(
        project=project,
        region=region,
        buckets={**topology["buckets"], "builds": f"{project}-builds"},
        topics=topology["topics"],
        taken={
            "topic": frozenset(topology["topics"].values()),
            "subscription": frozenset(topology["subscriptions"]),
            "log sink": frozenset(topology["sinks"]),
            "Cloud Run service": functions,
            "Eventarc trigger": functions,
            "schedule": frozenset(topology["schedules"]),
            "repository": frozenset({topology["images"]["trainer"].split("/")[2]}),
            "service account": frozenset(
                f"{ACCOUNT_PREFIX}{name}@{project}.iam.gserviceaccount.com"
                for name in [*functions, *table["accounts"]]
            ),
            "role": frozenset(name for name, role in table["roles"].items() if role.get("custom")),
        },
    )


def training_regions() -> frozenset[str]:
    """Where Vertex AI runs training jobs; deploy/regions.yaml has the source."""
    read: dict[str, list[str]] = yaml.safe_load((DEPLOY / "regions.yaml").read_text())
    return frozenset(read["training"])
