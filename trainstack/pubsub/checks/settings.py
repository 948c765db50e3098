"""Validation of topics and subscriptions: reports all faults, fills in defaults.

Source: https://cloud.google.com/pubsub/docs/reference/rest/v1/projects.subscriptions
"""

from datetime import timedelta
from pathlib import Path

from google.protobuf.json_format import MessageToDict, SerializeToJsonError

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.pubsub import wire
from trainstack.pubsub.checks import names
from trainstack.pubsub.checks.filters import parse_filter
from trainstack.surface import load_surface

DEFAULT_ACK_DEADLINE_S = 10
MIN_ACK_DEADLINE_S = 10
MAX_ACK_DEADLINE_S = 600
MAX_BACKOFF_S = 600.0
DEFAULT_MIN_BACKOFF_S = 10.0
DEFAULT_MAX_DELIVERY_ATTEMPTS = 5
DEFAULT_RETENTION = timedelta(days=7)
MIN_RETENTION = timedelta(minutes=10)
MAX_RETENTION = timedelta(days=31)
DEFAULT_EXPIRATION = timedelta(days=31)
MIN_EXPIRATION = timedelta(days=1)
MAX_DELIVERY_ATTEMPTS = range(5, 101)

SURFACE = load_surface(Path(__file__).parents[1] / "surface.toml")
_ACTIVE = 1  # Topic.State.ACTIVE and Subscription.State.ACTIVE


def complete_topic(topic: wire.Message) -> None:
    """Validate a topic and fill in the service's defaults; idempotent.

    Raises:
        InvalidArgumentError: its retention is outside its range.
        Unimplemented: it uses an unsupported setting.
    """
    refuse_not_imitated(topic)
    if topic.HasField("message_retention_duration") and (faults := _retention_faults(topic)):
        raise InvalidArgumentError(" ".join(faults))
    topic.state = _ACTIVE


def complete_subscription(subscription: wire.Message) -> None:
    """Validate a subscription and fill in the defaults; idempotent.

    Raises:
        InvalidArgumentError: every value outside its range, in one message.
        Unimplemented: it uses an unsupported setting.
    """
    refuse_not_imitated(subscription)
    parse_filter(subscription.filter)
    _fill(subscription)
    if faults := [*_delivery_faults(subscription), *_time_faults(subscription)]:
        raise InvalidArgumentError(" ".join(faults))


def refuse_not_imitated(resource: wire.Message) -> None:
    """Raises `ApiError`: Unimplemented, or `InvalidArgumentError` for what JSON cannot express."""
    try:
        given = MessageToDict(resource)
    except SerializeToJsonError as fault:
        raise InvalidArgumentError(f"Invalid duration: {fault}") from fault
    given.pop("name", None)  # a path has it
    if faults := SURFACE.body_faults(resource.DESCRIPTOR.name, given):
        raise ApiError(Status.UNIMPLEMENTED, f"{'; '.join(faults)}; leave it out.")


def _fill(subscription: wire.Message) -> None:
    subscription.ack_deadline_seconds = subscription.ack_deadline_seconds or DEFAULT_ACK_DEADLINE_S
    if not subscription.HasField("message_retention_duration"):
        subscription.message_retention_duration.FromTimedelta(DEFAULT_RETENTION)
    if not subscription.HasField("expiration_policy"):
        subscription.expiration_policy.ttl.FromTimedelta(DEFAULT_EXPIRATION)
    if subscription.HasField("retry_policy"):
        retry = subscription.retry_policy
        if not retry.HasField("minimum_backoff"):
            retry.minimum_backoff.FromTimedelta(timedelta(seconds=DEFAULT_MIN_BACKOFF_S))
        if not retry.HasField("maximum_backoff"):
            retry.maximum_backoff.FromTimedelta(timedelta(seconds=MAX_BACKOFF_S))
    dead = subscription.dead_letter_policy
    if dead.dead_letter_topic and not dead.max_delivery_attempts:
        dead.max_delivery_attempts = DEFAULT_MAX_DELIVERY_ATTEMPTS
    subscription.state = _ACTIVE


def _delivery_faults(subscription: wire.Message) -> list[str]:
    faults: list[str] = []
    if not MIN_ACK_DEADLINE_S <= subscription.ack_deadline_seconds <= MAX_ACK_DEADLINE_S:
        faults.append(
            f"Invalid ack deadline {subscription.ack_deadline_seconds} s: it must be from "
            f"{MIN_ACK_DEADLINE_S} to {MAX_ACK_DEADLINE_S} s."
        )
    if subscription.HasField("retry_policy"):
        retry = subscription.retry_policy
        low, high = _duration(retry.minimum_backoff), _duration(retry.maximum_backoff)
        if not timedelta(0) <= low <= high <= timedelta(seconds=MAX_BACKOFF_S):
            faults.append(
                f"Invalid retry policy: minimum back-off {low}, maximum {high}; both must be from 0 to 600 s, the minimum not above the maximum."
            )
    dead = subscription.dead_letter_policy
    if dead.dead_letter_topic:
        names.check_name(dead.dead_letter_topic, kind="topics")
        if dead.max_delivery_attempts not in MAX_DELIVERY_ATTEMPTS:
            faults.append(
                f"Invalid max delivery attempts {dead.max_delivery_attempts}: it must be from 5 to 100."
            )
    return faults


def _time_faults(subscription: wire.Message) -> list[str]:
    faults = _retention_faults(subscription)
    policy = subscription.expiration_policy
    if policy.HasField("ttl") and (ttl := _duration(policy.ttl)) < MIN_EXPIRATION:
        faults.append(f"Invalid expiration {ttl}: it must be at least one day.")
    return faults


def _retention_faults(resource: wire.Message) -> list[str]:
    retention = _duration(resource.message_retention_duration)
    if MIN_RETENTION <= retention <= MAX_RETENTION:
        return []
    return [f"Invalid message retention {retention}: it must be from 10 minutes to 31 days."]


def _duration(given: wire.Message) -> timedelta:
    """Protobuf accepts any numbers in a duration; the service does not. Raises `InvalidArgumentError`."""
    try:
        duration: timedelta = given.ToTimedelta()
    except (ValueError, OverflowError) as fault:
        raise InvalidArgumentError(f"Invalid duration: {fault}") from fault
    return duration
