"""What Artifact Registry publishes about a push or a deletion, made of what Docker's registry posts about it.

Sources: https://distribution.github.io/distribution/about/notifications/ (the envelope that is posted) and
https://cloud.google.com/artifact-registry/docs/configure-notifications (the message), read 2026-11.
"""

import json
from collections.abc import Iterator

from trainmaster.local.http import json_value

# A push of an image posts an event for each layer too; an image is a manifest, or an index of manifests.
_IMAGES = frozenset(
    {
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
    }
)


class BadEnvelopeError(Exception):
    """What was posted is no envelope of events; the message says what is wrong."""


def messages_of(body: bytes, *, host: str) -> list[bytes]:
    """The messages that Artifact Registry at `host` publishes for these events, in their order.

    An event comes again until it is answered with 2xx, so a message may be made twice.

    Raises:
        BadEnvelopeError: the body is not what a registry posts.
    """
    try:
        envelope = json_value(body)
    except ValueError as fault:
        raise BadEnvelopeError(f"the body is no JSON: {fault}") from fault
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
