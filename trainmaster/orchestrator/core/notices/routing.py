"""Which of the policy's receivers get a notice that was published."""

import re
from collections.abc import Mapping, Sequence

from trainmaster.orchestrator.core.documents.codec import time_or
from trainmaster.orchestrator.core.documents.faults import cut, shown
from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.events.envelope import PubsubMessage, malformed_message, message_document
from trainmaster.orchestrator.core.notices.notice import PREFIX, RUN_PREFIX, TEST, Notice
from trainmaster.orchestrator.core.policy.policy import among
from trainmaster.orchestrator.core.policy.receivers import Receiver
from trainmaster.orchestrator.core.runs.states import ENDS, RunState

NAME_MAX_CHARS = 300
_NAME = re.compile(r"[!-~]+")
_QUIET = frozenset(RunState) - ENDS
"""States that a receiver gets only if the policy names them."""


def parse_published(message: PubsubMessage) -> tuple[Notice, Mapping[str, object]]:
    """The notice in the message, and its CloudEvent.

    Raises:
        EventMalformed: the message is not a notice of this service.
    """
    event = message_document(message, "a notice")
    notice_id, kind = event.get("id"), event.get("type")
    if not (_is_name(notice_id) and _is_name(kind) and str(kind).startswith(PREFIX)):
        problem = f"is not a notice from this service: its id is {shown(notice_id)}, its type {shown(kind)}"
        raise malformed_message(message, problem)
    at = time_or(event.get("time"), message.publish_time)
    subject, data = cut(str(event.get("subject") or ""), NAME_MAX_CHARS), mapping_at(event, "data")
    return Notice(id=str(notice_id), type=str(kind), subject=subject, time=at, data=data), event


def _is_name(text: object) -> bool:
    return isinstance(text, str) and len(text) <= NAME_MAX_CHARS and _NAME.fullmatch(text) is not None


def state_of_notice(notice: Notice) -> str:
    """`trainmaster.run.succeeded.v1` -> `succeeded`."""
    return notice.type.removeprefix(PREFIX).partition(".")[2].removesuffix(".v1")


def receivers_of(notice: Notice, receivers: Sequence[Receiver]) -> tuple[Receiver, ...]:
    """The receivers that get the notice; of a test, the one that it names."""
    if notice.type == TEST:
        return tuple(each for each in receivers if each.name == notice.data.get("receiver"))
    return tuple(each for each in receivers if _gets(each, notice))


def _gets(receiver: Receiver, notice: Notice) -> bool:
    when, state = receiver.when, state_of_notice(notice)
    if receiver.github is not None and not notice.type.startswith(RUN_PREFIX):
        return False
    if when.states is None:
        wanted = receiver.github is not None or state not in _QUIET
    else:
        wanted = state in when.states
    team, model = notice.data.get("team"), notice.data.get("model_name")
    is_of_team = when.teams is None or team in when.teams
    is_of_model = when.models is None or (isinstance(model, str) and among(model, when.models))
    return wanted and is_of_team and is_of_model
