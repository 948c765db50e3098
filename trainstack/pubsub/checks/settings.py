"""Validation of topics and subscriptions: reports all faults, fills in defaults.

Source: https://cloud.google.com/pubsub/docs/reference/rest/v1/projects.subscriptions
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from lark import Lark, Token, Transformer, UnexpectedInput, v_args

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.pubsub import wire
from trainstack.pubsub.checks import names
from trainstack.surface import load_surface

MAX_FILTER_BYTES = 256

Predicate: TypeAlias = Callable[[Mapping[str, str]], bool]

# Mixing AND and OR needs parentheses: the reference requires them "to create complete expressions".
_GRAMMAR = r"""
    ?start: conjunction | disjunction | term
    conjunction: term ("AND" term)+
    disjunction: term ("OR" term)+
    ?term: ("NOT" | "-") term -> negation
         | "(" start ")"
         | "attributes" ":" key -> present
         | "attributes" "." key "=" value -> equals
         | "attributes" "." key "!=" value -> differs
         | "hasPrefix" "(" "attributes" "." key "," value ")" -> prefix
    ?key: BARE | STRING
    ?value: STRING
    BARE: /[A-Za-z_][A-Za-z0-9_-]*/
    STRING: /"([^"\\]|\\["'\\abfnrtv]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[0-7]{1,3})*"/
    %ignore /\s+/
"""


def parse_filter(text: str) -> Predicate:
    """A predicate on a message's attributes; an empty filter matches every message.

    Source: https://cloud.google.com/pubsub/docs/subscription-message-filter

    Raises:
        InvalidArgumentError: longer than 256 bytes or invalid; the message has the position.
    """
    if not text:
        return lambda _attributes: True
    size = len(text.encode())
    if size > MAX_FILTER_BYTES:
        raise InvalidArgumentError(
            f"Invalid filter: it has {size} bytes; at most {MAX_FILTER_BYTES} are allowed."
        )
    try:
        tree = _PARSER.parse(text)
    except UnexpectedInput as fault:
        column = getattr(fault, "column", 0)
        raise InvalidArgumentError(
            f"Invalid filter {text!r}: it cannot be parsed from column {column} on. Expected attributes:KEY, "
            'attributes.KEY = "VALUE", attributes.KEY != "VALUE", hasPrefix(attributes.KEY, "PREFIX"), '
            "NOT, AND, OR and parentheses; AND and OR need parentheses between them."
        ) from fault
    predicate: Predicate = _Compiler().transform(tree)
    return predicate


def _text_of(token: Token) -> str:
    if not token.startswith('"'):
        return str(token)
    # The grammar accepts only escapes that mean the same in a Python string.
    return token[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")


@v_args(inline=True)
class _Compiler(Transformer[Token, Predicate]):
    def present(self, key: Token) -> Predicate:
        name = _text_of(key)
        return lambda attributes: name in attributes

    def equals(self, key: Token, value: Token) -> Predicate:
        name, wanted = _text_of(key), _text_of(value)
        return lambda attributes: attributes.get(name) == wanted

    def differs(self, key: Token, value: Token) -> Predicate:
        name, refused = _text_of(key), _text_of(value)
        return lambda attributes: attributes.get(name) != refused

    def prefix(self, key: Token, value: Token) -> Predicate:
        name, start = _text_of(key), _text_of(value)
        return lambda attributes: name in attributes and attributes[name].startswith(start)

    def negation(self, inner: Predicate) -> Predicate:
        return lambda attributes: not inner(attributes)

    def conjunction(self, *parts: Predicate) -> Predicate:
        return lambda attributes: all(part(attributes) for part in parts)

    def disjunction(self, *parts: Predicate) -> Predicate:
        return lambda attributes: any(part(attributes) for part in parts)


_PARSER = Lark(_GRAMMAR, parser="lalr")


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
