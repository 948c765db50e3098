"""The table that `up` prints when the stack is ready."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from trainstack.functions.function import BucketTrigger, Function
from trainstack.stack.topology import Topology

if TYPE_CHECKING:
    from trainstack.stack.services import RunningServices

NOT_ENFORCED = "not enforced: --isolation none"
_WIDTH = 24


def endpoints(
    services: "RunningServices",
    topology: Topology,
    functions: Iterable[tuple[Function, str]],
    *,
    env_path: Path,
    enforced: bool,
) -> str:
    """A table of all endpoints and folders. `functions` are the deployed ones with their URLs.

    `enforced`: whether the services refuse what accounts have no permission for. Lines are never wrapped, not even on a
    narrow terminal: users copy addresses from them.
    """
    title = f"Trainmaster's local stack: project {topology.project}, region {topology.region}"
    data = topology.buckets.get("data")
    rows = {
        "Cloud Storage": services.storage_url,
        "Pub/Sub": services.pubsub_host,
        "Vertex AI": services.vertex_url,
        "Cloud Logging": services.logging_url,
        "Cloud Monitoring": services.monitoring_url,
        "Permissions": services.iam_url if enforced else f"{services.iam_url}  {NOT_ENFORCED}",
        "Artifact Registry": services.registry,
        **{function.name: f"{url}  ← {_source(function)}" for function, url in functions},
        "Drop requests into": str(services.buckets_dir / topology.buckets["inbox"] / "requests"),
        "Put data into": f"{services.buckets_dir / data}  → gs://{data}" if data else "",
        "In another shell": f"source {shlex.quote(str(env_path))}",
    }
    width = max(_WIDTH, *(len(name) + 2 for name in rows))
    shown = (f"  {name:{width}}{value}".rstrip() for name, value in rows.items() if value)
    return "\n".join([title, *shown])


def _source(function: Function) -> str:
    match function.trigger:
        case BucketTrigger(bucket=bucket):
            return f"gs://{bucket}"
        case trigger:
            return f"topic {trigger.topic}"
