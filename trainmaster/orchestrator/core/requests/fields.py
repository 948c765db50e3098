"""A mapping in the spelling of a Google API, read key by key."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from trainmaster.orchestrator.core.documents.faults import MAX_COLLECTED, Fault, listed, nearest, unknown_key
from trainmaster.orchestrator.core.documents.values import Path, whole
from trainmaster.orchestrator.core.requests.own_document import OwnDocument, Translation
from trainmaster.orchestrator.core.requests.spec import PARTS, camel_case, in_camel_case

_NAMED_ENUMS = "write the name; the clients print names with use_integers_for_enums=False"
_SECONDS = re.compile(r"([0-9]+)(\.0+)?s")
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_HUMP = re.compile(r"([A-Z])")
_V1BETA1 = "only the API's v1beta1 has this key, and"
_OWN = "no job of Vertex AI has this key; our own dialect has scheduling.retries, retry_on and start_within_s"
ELSEWHERE = {
    **dict.fromkeys(("retries", "maxRetries", "retryOn", "startWithinS"), _OWN),
    "minGpuDriverVersion": f"{_V1BETA1} jobs are submitted through v1",
    "multihostGpuNodeCount": f"{_V1BETA1} jobs are submitted through v1",
    "convexStopConfig": f"{_V1BETA1} deprecated it for convexAutomatedStoppingSpec",
    "transferLearningConfig": f"{_V1BETA1} there no tuning job uses it, only Vizier",
}
"""Keys that another API or dialect has, and why they are refused here."""
# fmt: off
REPEATED = frozenset({
    "args", "categoricalValues", "command", "conditionalParameterSpecs", "containerArgs", "containerCommand",
    "discreteValues", "dnsPeeringConfigs", "env", "lustreMounts", "metrics", "models", "nfsMounts", "packageUris",
    "parameters", "params", "reservedIpRanges", "values", "workerPoolSpecs",
})
# fmt: on
"""Keys of both APIs that hold lists. gcloud takes a single value for the list of it, and of a list the last member where
a mapping is expected: https://github.com/google/apitools/blob/master/apitools/base/protorpclite/protojson.py"""


class Fields:
    """A mapping of the document; keys are read by their camelCase names.

    A key whose value is null or an empty string is absent, as it is to the API. A single value is the list of it where
    the API has a list, as it is to gcloud. If any key of a mapping is read, each
    key that is never read becomes a fault at the end of the translation.
    """

    def __init__(self, value: object, path: Path, translation: Translation) -> None:
        self.value = value
        self.path = path
        self.translation = translation
        self.kind_fault = not isinstance(value, Mapping)
        self._value: Mapping[str, object] = value if isinstance(value, Mapping) else {}
        self._keys: dict[str, str] = {}
        self._again: dict[str, str] = {}
        for key in map(str, self._value):
            name = camel_case(key)
            (self._again if name in self._keys else self._keys)[name] = key
        self._asked: set[str] = set()
        self._passed: set[str] = set()
        # One-word keys do not show the spelling, but their neighbours do.
        distinctive = [key for key in self._keys.values() if key.lower() != key or "_" in key]
        around = [part for part in path if isinstance(part, str)]
        self._snake = any("_" in key for key in distinctive or around)

    def get(self, name: str) -> object:
        if not self._asked:
            self.translation.unread.append(self._unread)
        self._asked.add(name)
        value = self._value_of(name)
        return [value] if name in REPEATED and not isinstance(value, list | None) else value

    def _value_of(self, name: str) -> object:
        value = self._value.get(self._keys.get(name, name))
        return None if value == "" else value

    def has(self, name: str) -> bool:
        return self.get(name) is not None

    def at(self, name: str) -> Path:
        """The path of the name, or the path it would have in the spelling of its neighbours.

        What would be inside a value that is not a mapping is that value's own fault.
        """
        within = () if self.kind_fault and self.value is not None else (self._spelling_of(name),)
        return (*self.path, *within)

    def member_at(self, name: str, index: int) -> Path:
        """The path of a member of a list; of a single value, which is the list of it, the key's own."""
        return (*self.at(name), index) if isinstance(self._value_of(name), list | None) else self.at(name)

    def present(self, names: Collection[str]) -> list[str]:
        """Those of the names that have a value, as the text spells them; none is suggested for a misspelt key."""
        self._passed.update(names)
        return [self._keys[name] for name in names if self._value.get(self._keys.get(name, name)) is not None]

    def number(self, name: str) -> object:
        return number(self.get(name))

    def duration(self, name: str) -> object:
        """Whole seconds; a value that is not a duration of the API is a fault."""
        found = seconds(self.get(name))
        if not isinstance(found, str):
            return found
        repair = f"write {found}s" if found.isdecimal() else ""
        allowed = "seconds followed by s, for example 3600s"
        self.refuse(name, "not a duration in whole seconds", allowed=allowed, repair=repair)
        return None

    def fields(self, name: str) -> "Fields":
        """The mapping under the name, or the last in a list; empty if it is absent or, with a fault, not a mapping."""
        value, path = self.get(name), self.at(name)
        if isinstance(value, list) and value and isinstance(value[-1], Mapping):
            if len(value) > 1:
                self.refuse(name, "expected a mapping", repair=f"keep one of the {len(value)}, without '- '")
            value, path = value[-1], (*path, len(value) - 1)
        inner = Fields(value, path, self.translation)
        if self.has(name) and inner.kind_fault:
            self.refuse(name, "expected a mapping")
        return inner

    def items(self, name: str) -> Iterator["Fields"]:
        """The members of a list, each read as a mapping, even if it is not one."""
        value = self.get(name)
        for index, member in enumerate(value if isinstance(value, list) else ()):
            yield Fields(member, self.member_at(name, index), self.translation)

    def mappings(self, name: str, problem: str = "expected a mapping") -> Iterator["Fields"]:
        """The members of a list that are mappings; the others are faults."""
        for item in self.items(name):
            if item.kind_fault:
                self.translation.refuse(item.path, problem, value=item.value)
            else:
                yield item

    def word(self, name: str, words: Mapping[str, str | None]) -> str | None:
        """Our word for the API's; None if it is absent, or if `words` have none for it."""
        value = self.get(name)
        if isinstance(value, str) and value in words:
            return words[value]
        if value is not None:
            self.refuse_choice(name, words)
        return None

    # Any: the other arguments of `Fault`, of different types.
    def refuse(self, name: str, problem: str, **said: Any) -> None:
        """Add a fault of the key. It quotes the key's value unless `found` or `value` is given."""
        self.translation.refuse(self.at(name), problem, **self._said(name, said))

    def refuse_choice(self, name: str, among: Collection[str]) -> None:
        """Add a fault of a value that is not allowed, with the nearest allowed one as its repair."""
        value, repair = self.get(name), ""
        if isinstance(value, str):
            repair = nearest(value, list(among), self.translation.suggestions)
        elif isinstance(value, int):
            repair = _NAMED_ENUMS
        self.refuse(name, "not an allowed value", value=value, among=among, repair=repair)

    def warn(self, name: str, problem: str, **said: Any) -> None:
        """Add a warning about the key; it quotes the value as `refuse` does."""
        self.translation.warn(self.at(name), problem, **self._said(name, said))

    def pass_over(self) -> Mapping[str, object]:
        """The mapping as it is written, all of whose other keys are accepted: it already has a fault, and reading stops."""
        self._passed.update(self._keys)
        return self._value

    def _unread(self) -> list[Fault]:
        """A fault for every key that was never read, and for every key given in both spellings."""
        foreign = set(self._keys) - self._asked - self._passed
        elsewhere = [name for name in sorted(foreign & ELSEWHERE.keys()) if self._value[self._keys[name]]]
        known, present = set(map(self._spelling_of, self._asked)), set(map(self._spelling_of, self._keys))
        not_allowed = partial(
            unknown_key,
            parents=self.path,
            known=known,
            present=present,
            problem="this key is not allowed in a request",
            suggestions=self.translation.suggestions,
        )
        foreign -= ELSEWHERE.keys()
        unknown = [not_allowed(self._keys[name]) for name in sorted(foreign)[:MAX_COLLECTED]]
        unknown += [
            Fault(at=self.at(name), problem=ELSEWHERE[name], repair="remove it") for name in elsewhere
        ]
        return [*map(self._twice, sorted(self._again)), *unknown]

    def _twice(self, name: str) -> Fault:
        problem, both = "the key is given in two spellings", listed((self._keys[name], self._again[name]))
        path, repair = (*self.path, self._again[name]), "keep one of the two"
        return Fault(at=path, problem=problem, found=both, repair=repair, is_key=True)

    def _spelling_of(self, name: str) -> str:
        return self._keys.get(name) or (_HUMP.sub(r"_\1", name).lower() if self._snake else name)

    def _said(self, name: str, said: dict[str, Any]) -> dict[str, Any]:
        value = self._value_of(name)
        return said if value is None or {"found", "value"} & set(said) else {**said, "value": value}


Read = Callable[[Fields, str], object]
"""How a value is read: `Fields.get` (unchanged), `Fields.number` or `Fields.duration`."""


def copy_keys(written: Fields, own: OwnDocument, keys: Mapping[str, str], read: Read = Fields.get) -> None:
    """Copy the values of the API's keys to our own keys, and what is inside those of PARTS to its own keys."""
    for theirs, ours in keys.items():
        inside = inverse(in_camel_case(PARTS.get(ours, ())))
        if not inside:
            own.put(ours, read(written, theirs), written.at(theirs))
            if theirs in REPEATED:
                own.translation.place((*own.path, ours, 0), written.member_at(theirs, 0))
        elif theirs in REPEATED:
            for index, part in enumerate(written.mappings(theirs)):
                copy_keys(part, own.member(ours, index, part.path), inside)
            own.translation.place((*own.path, ours), written.at(theirs))
        else:
            part = written.fields(theirs)
            copy_keys(part, own.inner(ours, part.path, there=written.has(theirs)), inside)


def inverse(names: Mapping[str, str]) -> dict[str, str]:
    """The table with names and values swapped."""
    return {theirs: ours for ours, theirs in names.items()}


def number(value: object) -> object:
    """A 64-bit integer from the forms that the API accepts: 2, 2.0 or "2"; any other value unchanged."""
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else whole(value)


def seconds(value: object) -> object:
    """A duration as the API writes it, `3600s`, in whole seconds; any other value unchanged."""
    match = _SECONDS.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else value
