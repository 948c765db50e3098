"""A registry's report of a push becomes the message that Artifact Registry publishes."""

import json
from typing import Any

import pytest

from trainstack.registry.server import BadEnvelopeError, messages_of

HOST = "us-central1-docker.pkg.dev"
DIGEST = "sha256:" + "0a" * 32
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def event(action: str = "push", **target: Any) -> dict[str, Any]:
    whole = {"mediaType": MANIFEST, "digest": DIGEST, "repository": "my-project/r/i", "tag": "1", **target}
    return {"id": "a", "action": action, "target": {k: v for k, v in whole.items() if v is not None}}


def published(*events: dict[str, Any]) -> list[dict[str, str]]:
    body = json.dumps({"events": events}).encode()
    return [json.loads(message) for message in messages_of(body, host=HOST)]


def test_a_pushed_tag_is_an_insert_with_digest_and_tag_under_the_registrys_name_in_the_cloud() -> None:
    image = f"{HOST}/my-project/r/i"
    assert published(event()) == [{"action": "INSERT", "digest": f"{image}@{DIGEST}", "tag": f"{image}:1"}]


def test_a_push_by_digest_has_no_tag() -> None:
    (message,) = published(event(tag=None))
    assert message.keys() == {"action", "digest"}


def test_layers_and_pulls_are_not_published() -> None:
    assert published(event(mediaType=LAYER), event("pull"), event("mount")) == []


def test_a_deletion_is_published() -> None:
    (message,) = published(event("delete", mediaType=None, digest=None))
    assert message == {"action": "DELETE", "tag": f"{HOST}/my-project/r/i:1"}


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"events": 1}', b'{"events": ["push"]}', b"\xff", b"[" * 100_000]
)
def test_a_body_that_is_not_an_envelope_is_refused(body: bytes) -> None:
    with pytest.raises(BadEnvelopeError):
        messages_of(body, host=HOST)


def test_an_event_without_a_target_is_passed_over() -> None:
    assert published({"action": "push"}, {"action": "push", "target": 1}, event()) == published(event())
