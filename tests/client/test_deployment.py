"""A deployment is read from its ledger; what cannot be read says which version to use, or what to do."""

from typing import Any

import pytest

from tests.client.served import PROJECT, ROOT, Served
from tests.core.shipped import assert_valid
from trainmaster.client.deployment import deployment_document, read_deployment
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.resources import TOPOLOGY, parse_topology
from trainmaster.version import VERSION

POLICY = (ROOT / "functions" / "policy.yaml").read_bytes()
PRICES = (ROOT / "functions" / "prices.yaml").read_bytes()


def described(policy: bytes = POLICY) -> dict[str, Any]:
    topology = parse_topology(TOPOLOGY, project=PROJECT, region="us-central1")
    return deployment_document(topology, project=PROJECT, region="us-central1", policy=policy, prices=PRICES)


def test_the_document_follows_its_schema_and_has_the_policy_as_deployed() -> None:
    document = described()
    assert_valid(document, "deployment.v1")
    assert document["version"] == VERSION
    names = {"project": PROJECT, "region": "us-central1", "models_bucket": f"{PROJECT}-models"}
    assert "us-central1" in policy_from(document["policy"], names).regions


def test_a_published_deployment_is_read_back(served: Served) -> None:
    served.write("ledger", "deployment.json", described())
    deployment = read_deployment(served.clients)
    assert (deployment.version, deployment.project, deployment.region) == (VERSION, PROJECT, "us-central1")
    assert deployment.buckets["models"] == f"{PROJECT}-models"
    assert deployment.topics["requests"] == "trainmaster-requests"
    assert deployment.trainer_image == f"us-central1-docker.pkg.dev/{PROJECT}/trainmaster/trainer"
    assert deployment.policy["schema"] == "policy.v1"
    assert deployment.prices["currency"] == "USD"


def test_a_deployment_of_an_older_version_is_missing_with_the_command_that_updates_it(served: Served) -> None:
    with pytest.raises(NotFound, match=r"deployment.json does not exist.*trainmaster up --detach"):
        read_deployment(served.clients)


def test_a_newer_document_is_refused_with_the_version_that_can_read_it(served: Served) -> None:
    served.write("ledger", "deployment.json", {**described(), "schema": "deployment.v2", "version": "9.1.0"})
    with pytest.raises(
        ClientRefused, match=r"'deployment.v2'.*reads 'deployment.v1'. Version '9.1.0' deployed it"
    ):
        read_deployment(served.clients)


def test_every_fault_of_a_damaged_document_is_named(served: Served) -> None:
    document = {**described(), "region": 1, "topics": {"requests": None}, "policy": []}
    served.write("ledger", "deployment.json", document)
    with pytest.raises(ClientRefused) as refused:
        read_deployment(served.clients)
    for place in (
        "$.region: expected a text",
        "$.topics: expected names by role",
        "$.policy: expected a document",
    ):
        assert place in str(refused.value)
    assert "$.buckets" not in str(refused.value)


@pytest.mark.parametrize("policy", [b"- a list", b"a: [", b""])
def test_a_policy_that_is_no_mapping_is_refused_before_it_is_deployed(policy: bytes) -> None:
    with pytest.raises(ValueError, match=r"^the policy: \$"):
        described(policy)
