"""Turns the notifications of Docker's registry into the messages that Artifact Registry publishes about pushes and deletions.

Sources: https://distribution.github.io/distribution/about/notifications/ (the posted envelope) and
https://cloud.google.com/artifact-registry/docs/configure-notifications (the message), read 2026-11.
"""

import json
from collections.abc import Iterator

from trainstack.json_bodies import json_value

# A push of an image also posts an event for each layer; the image itself is a manifest or an index of
# manifests.
_IMAGES = frozenset(
    {
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
    }
)


class BadEnvelopeError(Exception):
    """The body is not an envelope of events; the message says why."""


def messages_of(body: bytes, *, host: str) -> list[bytes]:
    """The messages that Artifact Registry at `host` publishes for these events, in their order.

    An event is posted again until it is answered with 2xx, so a message may be duplicated.

    Raises:
        BadEnvelopeError: the body is not an envelope of events.
    """
    try:
        envelope = json_value(body)
    except ValueError as fault:
        raise BadEnvelopeError(f"the body is not valid JSON: {fault}") from fault
    events = envelope.get("events") if isinstance(envelope, dict) else None
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise BadEnvelopeError("the body has no list `events` of objects")
    return [json.dumps(message).encode() for event in events for message in _messages(event, host)]


def _messages(event: dict[str, object], host: str) -> Iterator[dict[str, str]]:
    target = event.get("target")
    if not isinstance(target, dict):
        return
    repository, digest, tag = (str(target.get(key) or "") for key in ("repository", "digest", "tag"))
    image = f"{host}/{repository}"
    named = {"digest": f"{image}@{digest}"} if digest else {}
    tagged = {"tag": f"{image}:{tag}"} if tag else {}
    match event.get("action"):
        case "push" if target.get("mediaType") in _IMAGES and digest:
            yield {"action": "INSERT", **named, **tagged}
        case "delete" if named or tagged:
            yield {"action": "DELETE", **named, **tagged}
