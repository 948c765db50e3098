"""The document that a deployment publishes about itself in its ledger: schemas/deployment.v1.schema.json

A client needs the policy and the prices that its requests meet, and can read only the ledger. In one document
they always belong together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT, object_uri
from trainmaster.orchestrator.core.policy.admission import Admission, normalize_admission
from trainmaster.version import VERSION

DEPLOYMENT_SCHEMA = "deployment.v1"
_TEXTS = ("version", "project", "region", "trainer_image")
_TABLES = ("buckets", "topics")
_DOCUMENTS = ("policy", "prices")


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What a laptop cannot see of a deployment. `buckets` and `topics` map roles to names and ids.

    `policy` and `prices` are documents as they were deployed: policy.v1 with its variables unfilled, and prices.v1.
    """

    version: str
    project: str
    region: str
    buckets: Mapping[str, str]
    topics: Mapping[str, str]
    trainer_image: str
    policy: Mapping[str, Any]
    prices: Mapping[str, Any]


def read_deployment(clients: Clients) -> Deployment:
    """The deployment of the clients' context.

    Raises:
        NotFound: the ledger has no such document.
        ClientRefused: another version wrote it, which this one cannot read, or it is damaged.
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    from trainmaster.client.find import read_document  # not for the stack, which starts sooner

    context, found = clients.context, read_document(clients, DEPLOYMENT_OBJECT)
    uri = object_uri(context.ledger_bucket, DEPLOYMENT_OBJECT)
    named = f" --name {context.deployment}" if context.deployment else ""
    again = (
        f"trainmaster deploy --project {context.project} --region {context.region}{named}"
        if context.state is None
        else "trainmaster down, then trainmaster up --detach"
    )
    if found is None:
        raise NotFound(
            f"{uri} does not exist: an older version made this deployment, or none is there. Update it: {again}"
        )
    if found.get("schema") != DEPLOYMENT_SCHEMA:
        raise ClientRefused(
            f"{uri} is {found.get('schema')!r}, and this version ({VERSION}) reads {DEPLOYMENT_SCHEMA!r}. "
            f"Version {found.get('version')!r} deployed it: use that one, or deploy this one: {again}"
        )
    faults = [
        *(f"$.{name}: expected a text" for name in _TEXTS if not isinstance(found.get(name), str)),
        *(f"$.{name}: expected names by role" for name in _TABLES if not _is_table(found.get(name))),
        *(f"$.{name}: expected a document" for name in _DOCUMENTS if not isinstance(found.get(name), dict)),
    ]
    if faults:
        raise ClientRefused("\n".join([f"{uri} is damaged. Deploy again: {again}", *faults]))
    return Deployment(**{name: found[name] for name in (*_TEXTS, *_TABLES, *_DOCUMENTS)})


def admission_of(deployment: Deployment) -> Admission:
    """The limits and caps of the deployment's policy.

    Raises:
        ClientRefused: this version cannot read them.
    """
    try:
        return decoded(Admission, normalize_admission(deployment.policy.get("admission", {})))
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ClientRefused(
            f"The deployed policy has another version: {type(error).__name__}: {error}"
        ) from error


def read_admission(clients: Clients) -> tuple[Admission | None, str]:
    """The limits and caps of the deployment's policy, or None and why they are unknown."""
    try:
        return admission_of(read_deployment(clients)), ""
    except (NotFound, ClientRefused) as unknown:
        return None, str(unknown)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def deployment_document(
    topology: Mapping[str, Any], *, project: str, region: str, policy: bytes, prices: bytes
) -> dict[str, Any]:
    """The document for a deployment of this version.

    Args:
        topology: its `buckets`, `topics` and `images`, each by role.
        project: the project's id.
        region: of the whole deployment.
        policy: the content of the file that is deployed with the functions.
        prices: the same of the price table.

    Raises:
        ValueError: one of the files does not hold a YAML mapping; the message has its faults.
    """
    return {
        "schema": DEPLOYMENT_SCHEMA,
        "version": VERSION,
        "project": project,
        "region": region,
        "buckets": dict(topology["buckets"]),
        "topics": dict(topology["topics"]),
        "trainer_image": topology["images"]["trainer"],
        "policy": _mapping(policy, "the policy"),
        "prices": _mapping(prices, "the price table"),
    }


def _mapping(content: bytes, what: str) -> dict[str, Any]:
    read = parse_document(content, as_json=False)
    if read.faults or not isinstance(read.value, dict):
        faults = [str(fault) for fault in read.faults] or ["$: expected a mapping"]
        raise ValueError("\n".join(f"{what}: {fault}" for fault in faults))
    return read.value
