"""The language's functions: log_id, SEARCH, sample, ip_in_net.

Source: https://cloud.google.com/logging/docs/view/logging-query-language#functions
"""

import hashlib
import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import unquote

from trainmaster.local.logging.filters.compare import as_text, fold, texts
from trainmaster.local.logging.filters.errors import FilterError
from trainmaster.local.logging.filters.fields import Getter, getter, resolve
from trainmaster.local.logging.filters.tree import Call, Value

Predicate: TypeAlias = Callable[[Mapping[str, object]], bool]

_WORD = re.compile(r"\w+")


def predicate(call: Call) -> Predicate:
    """The predicate of a call.

    Raises:
        FilterError: an unknown function or wrong arguments.
    """
    makers = {"log_id": _log_id, "search": _search, "sample": _sample, "ip_in_net": _ip_in_net}
    if (make := makers.get(call.name.lower())) is None:
        raise FilterError(
            f"the function {call.name!r} is not imitated; known are log_id, SEARCH, sample, ip_in_net"
        )
    return make(call.arguments)


def _log_id(arguments: tuple[Value, ...]) -> Predicate:
    """The log's id without its URL encoding: log_id("ml.googleapis.com/1")."""
    (wanted,) = _exactly(arguments, 1, 'log_id("LOG_ID")')
    text = fold(wanted.text)
    return lambda entry: fold(unquote(str(entry.get("logName", "")).rpartition("/logs/")[2])) == text


def _search(arguments: tuple[Value, ...]) -> Predicate:
    """Whole words, all of them, in any order; in one field or anywhere."""
    if len(arguments) not in (1, 2):
        raise FilterError('the function is used as SEARCH("words") or SEARCH(field, "words")')
    words = {fold(word) for word in _WORD.findall(arguments[-1].text)}
    get = _field(arguments[0]) if len(arguments) == 2 else lambda entry: (dict(entry),)  # noqa: PLR2004  # field and words
    return lambda entry: (
        words <= {fold(word) for found in get(entry) for text in texts(found) for word in _WORD.findall(text)}
    )


def _sample(arguments: tuple[Value, ...]) -> Predicate:
    """A fixed share of the values, by their hash: the same entry is always in or always out."""
    field, share = _exactly(arguments, 2, "sample(field, 0.1)")
    try:
        bound = float(share.text) * 2.0**64
    except ValueError as fault:
        raise FilterError(f"{share.text!r} is no share between 0 and 1") from fault
    get = _field(field)
    return lambda entry: any(_hash64(as_text(found)) < bound for found in get(entry))


def _hash64(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _ip_in_net(arguments: tuple[Value, ...]) -> Predicate:
    field, net = _exactly(arguments, 2, 'ip_in_net(field, "10.0.0.0/8")')
    try:
        network = ipaddress.ip_network(net.text, strict=False)
    except ValueError as fault:
        raise FilterError(f"{net.text!r} is no network: {fault}") from fault
    get = _field(field)

    def inside(found: object) -> bool:
        try:
            return ipaddress.ip_address(as_text(found)) in network
        except ValueError:
            return False

    return lambda entry: any(inside(found) for found in get(entry))


def _field(value: Value) -> Getter:
    if value.quoted:
        raise FilterError(f"{value.text!r} must be a field, without quotes")
    return getter(resolve(tuple(value.text.split(".")))[0])


def _exactly(arguments: tuple[Value, ...], count: int, usage: str) -> tuple[Value, ...]:
    if len(arguments) != count:
        raise FilterError(f"the function is used as {usage}")
    return arguments
