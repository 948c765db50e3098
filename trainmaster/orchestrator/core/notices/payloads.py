"""What is sent for a notice to each kind of receiver.

Sources (read 2026-11): https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks and
https://docs.slack.dev/messaging/formatting-message-text; https://docs.github.com/en/rest/commits/statuses, whose
descriptions have at most 140 characters; https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trainmaster.orchestrator.core.documents.codec import json_line
from trainmaster.orchestrator.core.documents.faults import cut
from trainmaster.orchestrator.core.notices.message import Message
from trainmaster.orchestrator.core.policy.receivers import Receiver, Target
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

DESCRIPTION_MAX_CHARS = 140
COMMIT_STATES: Mapping[RunState, str] = {
    RunState.SUCCEEDED: "success",
    RunState.PARTIALLY_SUCCEEDED: "success",
    RunState.FAILED: "failure",
    RunState.REJECTED: "failure",
    RunState.CANCELLED: "error",
    RunState.EXPIRED: "error",
}
"""GitHub's state of a commit by the run's; every other is `pending`."""
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_JSON = "application/json; charset=utf-8"


@dataclass(frozen=True, kw_only=True, repr=False)
class Post:
    """One POST. It holds secrets, so it has no text form."""

    url: str
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """What every receiver of a notice gets, in its form: the CloudEvent, the message, and the run's record, if known."""

    event: Mapping[str, object]
    message: Message
    record: RunRecord | None
    at: datetime


def post_of(parcel: Parcel, receiver: Receiver, secret: str) -> Post | None:
    """The POST for this receiver; None if it gets none: an e-mail, or the status of a run without a commit."""
    if receiver.slack is not None:
        return _slack_post(parcel.message, secret)
    if receiver.webhook is not None:
        return _webhook_post(parcel, receiver.webhook, secret)
    return None if receiver.github is None else _commit_post(parcel, receiver.github, secret)


def _slack_post(message: Message, url: str) -> Post:
    """One line of text; `&`, `<` and `>` are escaped, so that no text from outside makes a link or calls people."""
    link = f" · <{_escaped_text(message.link)}|job>" if message.link else ""
    text = f"{_escaped_text(message.text)}{link} · `{_escaped_text(message.command)}`"
    body = json_line({"text": text, "unfurl_links": False})
    return Post(url=url, body=body.encode(), headers={"Content-Type": _JSON})


def _escaped_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _webhook_post(parcel: Parcel, hook: Target, secret: str) -> Post:
    """The CloudEvent with the extension `message`, signed over the time and the body."""
    body = json_line({**parcel.event, "message": parcel.message.line}).encode()
    timestamp = str(int(parcel.at.timestamp()))
    signature = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/cloudevents+json; charset=utf-8",
        "Idempotency-Key": str(parcel.event["id"]),
        "X-Trainmaster-Timestamp": timestamp,
        "X-Trainmaster-Signature": f"v1={signature}",
    }
    return Post(url=hook.url, body=body, headers=headers)


def _commit_post(parcel: Parcel, target: Target, token: str) -> Post | None:
    """The status of the run's commit, by the state on record: a late notice does not change it back."""
    record, message = parcel.record, parcel.message
    commit = record.source.commit if record else None
    if record is None or commit is None or not _SHA.fullmatch(commit.id):
        return None
    body = {
        "state": COMMIT_STATES.get(record.state, "pending"),
        "description": cut(message.text, DESCRIPTION_MAX_CHARS),
        "context": f"trainmaster/{record.model_name or 'request'}",
        **({"target_url": message.link} if message.link else {}),
    }
    headers = {
        "Content-Type": _JSON,
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    url = f"{target.api.rstrip('/')}/repos/{target.repository}/statuses/{commit.id}"
    return Post(url=url, body=json_line(body).encode(), headers=headers)
