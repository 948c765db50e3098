"""`--set PATH=VALUE`: values of a request that replace those of its file."""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.terms import schema
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.requests.matrix import MATRIX
from trainmaster.orchestrator.core.requests.request import REQUEST_SCHEMA

FORM = "KEY=VALUE or KEY.KEY=VALUE, for example cluster.chief.machine=n1-standard-8 or args[0]=--epochs=5"
SETTINGS_MAX = 100
_PART = re.compile(r"(?P<key>[^.\[\]=\s]+)|\[(?P<index>[0-9]{1,4})\]")


@dataclass(frozen=True, kw_only=True)
class RequestSetting:
    """One value and where it goes; None removes what is there.

    `option` is what the user gave it with, `text` the words behind that, empty for an option with one meaning, and
    `spelled` as in `Document`.
    """

    text: str
    path: tuple[str | int, ...]
    value: Any  # a YAML document
    spelled: Mapping[str, str] = field(default_factory=dict)
    option: str = "--set"

    def resolve_path(self, document: object) -> tuple[str | int, ...]:
        """The path as keys and indexes of the document that has the value: `args.0` is `args[0]`."""
        found: list[str | int] = []
        for part in self.path:
            found.append(int(part) if isinstance(document, list) else part)
            try:
                document = document[found[-1]]  # type: ignore[index]  # what cannot be indexed has nothing in it
            except (LookupError, TypeError):
                document = None
        return tuple(found)


def parse_settings(texts: Iterable[str], matrix: Iterable[str] = ()) -> tuple[RequestSetting, ...]:
    """The settings of `--set`, each value read as YAML; what a request has as a string is the text itself.

    `matrix` are those of `--matrix`: `lr=0.1,0.01` gives the list in the request's matrix.

    Raises:
        ClientRefused: a text has another form, or its value is not YAML; the message has every fault.
    """
    faults: list[str] = []
    settings: list[RequestSetting] = []
    given = [(text, RequestSetting(text=text, path=(), value=None)) for text in texts]
    for text in matrix:
        name, equals, values = text.partition("=")
        blank = RequestSetting(text=text, path=(), value=None, option="--matrix")
        given.append((f"{MATRIX}.{name}{equals}[{values}]" if equals else text, blank))
    for text, blank in given:
        try:
            settings.append(_setting(text, blank))
        except ClientRefused as refused:
            faults.append(str(refused))
    if len(settings) > SETTINGS_MAX:
        faults.append(
            f"Found {len(settings)} settings; at most {SETTINGS_MAX} are allowed. Edit the file instead."
        )
    if faults:
        raise ClientRefused("\n".join([*faults, f"Expected {FORM}."]))
    return tuple(settings)


def _setting(text: str, blank: RequestSetting) -> RequestSetting:
    path, equals, value = text.partition("=")
    parts = [part for dotted in path.split(".") for part in re.split(r"(?=\[)", dotted)]
    found = [_PART.fullmatch(part) for part in parts]
    if not equals or None in found:
        raise ClientRefused(f"{blank.option} {blank.text!r}: it is not KEY=VALUE.")
    keys = tuple(part["key"] or int(part["index"]) for part in found if part)
    read = parse_document(value.encode("utf-8", "surrogateescape"), as_json=False, what="value")
    is_kept = not read.faults and (read.value is None or isinstance(read.value, str))
    if not value.strip() or (not is_kept and _takes_text(keys)):
        return replace(blank, path=keys, value=value.strip())
    if read.faults:
        raise ClientRefused(f"{blank.option} {blank.text!r}: the value is not YAML: {read.faults[0]}")
    return replace(blank, path=keys, value=read.value, spelled=read.spelled)


def _takes_text(path: Iterable[str | int]) -> bool:
    """Whether the value at this path of a request is a string in every request, as in `env` and `args`."""
    whole = here = schema(REQUEST_SCHEMA)
    for part in path:
        is_index = "items" in here and (isinstance(part, int) or part.isdecimal())
        inside = here["items"] if is_index else here.get("properties", {}).get(part)
        here = inside or here.get("additionalProperties") or {}
        if "$ref" in here:
            here = whole["$defs"][here["$ref"].removeprefix("#/$defs/")]
    return here.get("type") == "string"


def with_settings(document: Mapping[str, Any], settings: Iterable[RequestSetting]) -> dict[str, Any]:
    """A copy of the document with these values; mappings on the way to a value are made.

    Raises:
        ClientRefused: a value would have to be inside a text or number, or in a list at a place that it has not; the message
            has every fault.
    """
    changed: dict[str, Any] = deepcopy(dict(document))
    faults: list[str] = []
    for setting in settings:
        try:
            _set_value(changed, setting)
        except ClientRefused as refused:
            faults.append(str(refused))
    if faults:
        raise ClientRefused("\n".join([*faults, f"Expected {FORM}."]))
    return changed


def _set_value(document: dict[str, Any], setting: RequestSetting) -> None:
    *above, last = setting.path
    here: Any = document
    for part in above:
        place = _place(here, part, setting)
        here = here.setdefault(place, {}) if isinstance(here, dict) else here[place]
    last = _place(here, last, setting, adds=True)
    if isinstance(last, int):
        here[last : last + 1] = [] if setting.value is None else [setting.value]
    elif setting.value is None:
        here.pop(last, None)
    else:
        here[last] = setting.value


def _place(here: object, part: str | int, setting: RequestSetting, *, adds: bool = False) -> str | int:
    """The key or index that `part` means in a mapping or list. `adds`: the place after a list's end is allowed too."""
    match here:
        case dict() if isinstance(part, str):
            return part
        case list() if isinstance(part, int) or part.isdecimal():
            if (index := int(part)) < len(here) + adds:
                return index
            problem = f"the list has {len(here)} entries, counted from [0]."
        case list():
            problem = f"{part!r} is a place in a list: write [0] for the first entry."
        case dict():
            keys = ", ".join(list(map(str, here))[:10]) or "none"
            problem = f"[{part}] is a place in a list, and there are keys: {keys}."
        case _:
            problem = f"there is no {part!r} in {here!r:.60}."
    raise ClientRefused(f"{setting.option} {setting.text!r}: {problem}")
