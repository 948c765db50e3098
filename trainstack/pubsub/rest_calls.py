"""Pub/Sub's calls over REST."""

from trainstack.pubsub import wire
from trainstack.pubsub.api.methods import KINDS, METHODS
from trainstack.transcoding.method import Services, method_from

_BODIES = {"CreateSchema": "schema"}


def services() -> Services:
    """The methods by service. Fields that are not in the path are in the body, if there is one and it is not one field."""
    return {
        service: [
            method_from(
                of_kind,
                name,
                *wire.types_of(name),
                body=_BODIES.get(name, "*" if rule.startswith("P") else ""),
            )
            for name, (rule, _) in methods.items()
            for of_kind in dict.fromkeys(rule.replace("KIND", kind) for kind in KINDS)
        ]
        for service, methods in METHODS.items()
    }
