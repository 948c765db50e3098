"""What the local stack publishes about itself in its ledger, as `trainmaster deploy` does for a deployment."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.client.deployment import deployment_document

if TYPE_CHECKING:
    from trainmaster.local.stack.topology import Topology


def describe_stack(topology: "Topology", functions: Path) -> dict[str, Any]:  # Any: a JSON document
    """The document, schemas/deployment.v1.schema.json, with the policy and prices that the functions' source reads.

    Raises:
        OSError, ValueError: one of these files cannot be read.
    """
    policy = Path(topology.environment.get("TRAINMASTER_POLICY") or functions / "policy.yaml")
    return deployment_document(
        {"buckets": topology.buckets, "topics": topology.topics, "images": topology.images},
        project=topology.project,
        region=topology.region,
        policy=policy.read_bytes(),
        prices=(functions / "prices.yaml").read_bytes(),
    )
