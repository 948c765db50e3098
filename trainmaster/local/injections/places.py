"""The places where an injection can strike, and the kinds that each of them supports."""

import difflib
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from trainmaster.local.injections.injection import (
    CALL_KINDS,
    DELIVERY_KINDS,
    FUNCTION_KINDS,
    OPENING_KINDS,
    Kind,
)

SERVICES = ("storage", "pubsub", "vertex", "logging", "functions")

METHODS: Mapping[str, str] = {
    "storage": "notify",
    "storage.buckets": "delete get getIamPolicy getStorageLayout insert list testIamPermissions",
    "storage.managedFolders": "getIamPolicy list testIamPermissions",
    "storage.notifications": "delete get insert list",
    "storage.objects": "cancelUpload compose copy delete get insert list patch rewrite",
    "pubsub": (
        "acknowledge createSubscription createTopic deleteSubscription deleteTopic deliver getSubscription "
        "getTopic listSubscriptions listTopicSubscriptions listTopics modifyAckDeadline publish pull "
        "streamingPull updateSubscription"
    ),
    "vertex.customJobs": "cancel create delete get list",
    "vertex.hyperparameterTuningJobs": "cancel create delete get list",
    "logging.entries": "list write",
    "logging.sinks": "create delete get list update",
    "logging": "export",
}
"""By service and collection, an emulator's methods and its ways of forwarding."""

KINDS_AT: Mapping[str, frozenset[Kind]] = {
    "pubsub.deliver": DELIVERY_KINDS,
    "pubsub.streamingPull": OPENING_KINDS,
}
"""Places that support other kinds than a call does. A glob reaches these places with the kinds they support.
"""


PLACES = tuple(f"{of}.{method}" for of, methods in METHODS.items() for method in methods.split())
"""Every place except `functions.NAME`: functions are named by the topology, which a plan does not know."""

_GLOBS = tuple(dict.fromkeys(f"{place.rpartition('.')[0]}.*" for place in PLACES))
_FUNCTION = "functions.NAME"
_FUNCTION_GLOB = re.compile(r"[A-Za-z0-9_*?!\[\]-]+")
_NEAR_CHARS = 200
GLOB_MAX_CHARS = 1024
"""Of a glob. Python's takes time that grows with the square of its length."""


def kinds_at(at: str) -> frozenset[Kind]:
    """The kinds that at least one place named or matched by `at` supports; none if `at` matches no place."""
    if len(at) > GLOB_MAX_CHARS:
        return frozenset()
    kinds = [KINDS_AT.get(place, CALL_KINDS) for place in PLACES if fnmatchcase(place, at)]
    service, _, name = at.partition(".")
    # A plan does not know which functions exist; a glob may match their service as any other.
    if at == "*" or (_FUNCTION_GLOB.fullmatch(name) and fnmatchcase("functions", service)):
        kinds.append(FUNCTION_KINDS)
    return frozenset[Kind]().union(*kinds)


def unknown_place(at: object) -> str:
    """The fault of an unknown place, with the closest known one; empty for a known place."""
    if isinstance(at, str) and kinds_at(at):
        return ""
    service = at.partition(".")[0] if isinstance(at, str) else ""
    known = [place for place in PLACES if place.startswith(f"{service}.")]
    there = (
        f"{service} has {', '.join(place.removeprefix(f'{service}.') for place in known)}"
        if known
        else f"the services are {', '.join(SERVICES)}"
    )
    near = _nearest(at, [*PLACES, *_GLOBS, _FUNCTION])
    return (
        "expected SERVICE.METHOD or a glob of it, like storage.objects.insert or functions.*, "
        f"found {at!r:.80}; {near}{' ' if near else ''}{there}."
    )


def unknown_kind(kind: object) -> str:
    """The fault of an unknown kind, with the closest known one; empty for a known kind."""
    known = [each.value for each in Kind]
    if kind in known:
        return ""
    found = f"expected one of {', '.join(known)}, found {kind!r:.80}"
    return f"{found}; {near}" if (near := _nearest(kind, known)) else f"{found}."


def kind_out_of_place(at: str, kind: Kind) -> str:
    """The fault of a kind that no place of `at` supports, and so would never strike; else empty."""
    known = kinds_at(at)
    if kind in known:
        return ""
    listed = ", ".join(each.value for each in Kind if each in known)
    return f"{at} supports only {listed}, found {kind.value!r}."


def _nearest(word: object, known: list[str]) -> str:
    """`did you mean 'kill'?`, or nothing if no known word is close."""
    # difflib's cost is quadratic in the length.
    if not isinstance(word, str) or len(word) > _NEAR_CHARS:
        return ""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""
