"""A push to Artifact Registry, as its notifications tell it.

Source: https://cloud.google.com/artifact-registry/docs/configure-notifications
"""

import re

from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import PubsubMessage
from trainmaster.orchestrator.core.policy.policy import repository
from trainmaster.orchestrator.core.requests.arrival import Ignored
from trainmaster.orchestrator.core.retraining.rules.condition import ConditionKind
from trainmaster.orchestrator.core.retraining.signals.signal import Signal, document_of

INSERT, DELETE = "INSERT", "DELETE"
_DIGEST = re.compile(r"(?P<repository>[^@\s]+)@(?P<digest>sha256:[0-9a-f]{64})")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def image_pushed_in(message: PubsubMessage) -> Signal | Ignored:
    """The push of a tagged image that the message tells of.

    Raises:
        EventMalformed: the message is no notification of a registry.
    """
    document = document_of(message, "a registry's notification")
    action, digest, tag = (document.get(key) for key in ("action", "digest", "tag"))
    if action == DELETE:
        return Ignored(reason=f"the image {tag or digest!r} was deleted, not pushed")
    if action != INSERT:
        raise _malformed(message, f"has the action {action!r}; a registry writes {INSERT} or {DELETE}")
    if not isinstance(tag, str) or not tag:
        return Ignored(reason=f"the image {digest!r} was pushed without a tag; rules watch tags")
    return _pushed(message, tag, digest)


def _pushed(message: PubsubMessage, tag: str, digest: object) -> Signal:
    found = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if found is None:
        raise _malformed(
            message, f"gives no digest of {tag!r} but {digest!r}; HOST/…/IMAGE@sha256:… is wanted"
        )
    name = tag.removeprefix(f"{found['repository']}:")
    if repository(tag) != found["repository"] or not _TAG.fullmatch(name):
        raise _malformed(message, f"has the tag {tag!r}, which is none of {found['repository']!r}")
    return Signal(
        kind=ConditionKind.NEW_IMAGE,
        id=f"image/{message.message_id}",
        at=message.publish_time,
        facts={"repository": found["repository"], "tag": name, "digest": found["digest"]},
        values={"image.uri": found[0], "image.digest": found["digest"], "image.tag": name},
    )


def _malformed(message: PubsubMessage, problem: str) -> EventMalformed:
    return EventMalformed(f"message {message.message_id!r} {problem}")
