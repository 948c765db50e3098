"""IAM policies of Pub/Sub's resources, where they are set."""

import pytest
from google.api_core.exceptions import Aborted, MethodNotImplemented, NotFound

from tests.stack.pubsub.clients import Clients


def policy(role: str, *members: str, etag: bytes = b"") -> dict[str, object]:
    return {"bindings": [{"role": role, "members": members}], "etag": etag}


def test_a_policy_is_kept_and_replaced_by_who_has_read_it(ours: Clients) -> None:
    topic = ours.topic()
    empty = ours.publisher.get_iam_policy(request={"resource": topic})
    assert list(empty.bindings) == []
    request = {"resource": topic, "policy": policy("roles/pubsub.viewer", "domain:a.com", etag=empty.etag)}
    kept = ours.publisher.set_iam_policy(request=request)
    assert ours.publisher.get_iam_policy(request={"resource": topic}) == kept
    with pytest.raises(Aborted, match="concurrent policy changes"):
        ours.publisher.set_iam_policy(request=request, retry=None)
    asked = ["pubsub.topics.publish"]
    tested = ours.publisher.test_iam_permissions(request={"resource": topic, "permissions": asked})
    assert list(tested.permissions) == asked
    with pytest.raises(NotFound):
        ours.publisher.get_iam_policy(request={"resource": f"{topic}-none"})
    with pytest.raises(MethodNotImplemented, match="allUsers is not imitated"):
        ours.publisher.set_iam_policy(
            request={"resource": topic, "policy": policy("roles/pubsub.viewer", "allUsers")}
        )
