"""Faults of a request or an answer of one of Google's REST APIs, by its discovery document.

They are stricter than the clients' messages, which also take snake_case and the numbers of enums.
Source of the forms: https://developers.google.com/discovery/v1/type-format and, for 64-bit integers in requests,
https://protobuf.dev/programming-guides/json/ (read 2026-11)
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).resolve().parent / "data"
_BASE64 = "(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}(?:==)?|[A-Za-z0-9+/_-]{3}=?)?"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)"
PATTERNS: Mapping[str, str] = {
    "int64": r"-?\d{1,19}",
    "uint64": r"\d{1,20}",
    "byte": _BASE64,
    "date": r"\d{4}-\d\d-\d\d",
    "date-time": _TIME,
    "google-datetime": _TIME,
    "google-duration": r"-?\d{1,12}(?:\.\d{1,9})?s",
    "google-fieldmask": r"(?:[A-Za-z_][\w.]*(?:,[A-Za-z_][\w.]*)*)?|\*",
}
BOUNDS: Mapping[str, tuple[int, int]] = {"int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1)}


class Side(Enum):
    """What only the service writes is refused in a REQUEST, and what is required is asked of it.

    An UPDATE may leave out everything. JSON of protobuf messages leaves out zeros, so that an ANSWER may lack numbers.
    64-bit integers are texts in an ANSWER, and numbers or texts in the others.
    """

    REQUEST = "request"
    UPDATE = "update"
    ANSWER = "answer"


@dataclass(frozen=True, kw_only=True)
class Api:
    """One version of one API, as the trimmed document in tests/judges/data describes it."""

    name: str

    @cached_property
    def document(self) -> Mapping[str, Any]:
        found: dict[str, Any] = json.loads((FOLDER / f"{self.name}.json").read_text())
        return found

    def method(self, verb: str, path: str) -> str:
        """The method of a verb and path; both may be an upload's.

        Raises:
            LookupError: the API has no such method.
        """
        for name, method in self.document["methods"].items():
            for template in (method["path"], method.get("upload")):
                if method["verb"] == verb and template and _matches(template, path):
                    return str(name)
        raise LookupError(f"{self.name} has no method {verb} {path}")

    def faults(self, schema: str, body: object, side: Side = Side.REQUEST, method: str = "") -> list[str]:
        """What is wrong with the body, each with its place; empty for a sound one."""
        return [
            f"{each.json_path}: {each.message}"
            for each in self._validator(schema, side, method).iter_errors(body)
        ]

    def request_faults(self, verb: str, url: str, body: object = None) -> list[str]:
        """What is wrong with a call: its route, its query, its body. `url` may be a path alone."""
        parts = urlsplit(url)
        try:
            name = self.method(verb, parts.path)
        except LookupError as unknown:
            return [str(unknown)]
        method = self.document["methods"][name]
        known = self.document["query"] | method["parameters"]
        faults = list(_query_faults(parse_qsl(parts.query, keep_blank_values=True), known))
        if "request" not in method:
            return faults if body in (None, {}) else [*faults, f"{name} takes no body, found {body!r}"]
        side = Side.UPDATE if verb == "PATCH" else Side.REQUEST
        return [*faults, *self.faults(method["request"], body or {}, side, name)]

    def answer_faults(self, verb: str, url: str, body: object) -> list[str]:
        """What is wrong with the body of a successful answer to the call.

        Raises:
            LookupError: the API has no such method.
        """
        name = self.method(verb, urlsplit(url).path)
        method = self.document["methods"][name]
        if "response" not in method:
            return [] if body is None else [f"{name} answers no body, found {body!r}"]
        return self.faults(method["response"], body, Side.ANSWER)

    @cache  # noqa: B019  # there is one instance of each API: `api`
    def _validator(self, schema: str, side: Side, method: str) -> Draft202012Validator:
        schemas = {name: converted(each, side, method) for name, each in self.document["schemas"].items()}
        return Draft202012Validator({"$ref": f"#/$defs/{schema}", "$defs": schemas})


def filled(path: str, name: str = "p1") -> str:
    """The path of a method in us-central1, with this name for all else that it leaves open."""
    return "/" + re.sub(r"\{[^}]*\}", name, path.replace("{locationsId}", "us-central1"))


@cache
def api(name: str) -> Api:
    return Api(name=name)


def converted(schema: Mapping[str, Any], side: Side, method: str) -> dict[str, Any]:
    """The discovery document's schema as a JSON Schema that refuses every unknown key."""
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{schema['$ref']}"}
    if schema["type"] == "any":
        return {}
    if schema["type"] == "object":
        return _object(schema, side, method)
    found: dict[str, Any] = {"type": schema["type"]}
    if "items" in schema:
        found["items"] = converted(schema["items"], side, method)
    if "enum" in schema:
        found["enum"] = schema["enum"]
    kind = schema.get("format", "")
    if schema["type"] == "string" and kind in PATTERNS:
        found["pattern"] = rf"\A(?:{PATTERNS[kind]})\Z"
    if kind in ("int64", "uint64") and side is not Side.ANSWER:
        found["type"] = ["string", "integer"]
    if kind in BOUNDS:
        found["minimum"], found["maximum"] = BOUNDS[kind]
    return found


def _object(schema: Mapping[str, Any], side: Side, method: str) -> dict[str, Any]:
    inner = {
        name: each
        for name, each in schema.get("properties", {}).items()
        if not (side is Side.REQUEST and each.get("readOnly"))
    }
    rest = schema.get("additionalProperties")
    return {
        "type": "object",
        "properties": {name: converted(each, side, method) for name, each in inner.items()},
        "required": [name for name, each in inner.items() if _is_required(each, side, method)],
        "additionalProperties": converted(rest, side, method) if rest else False,
    }


def _is_required(schema: Mapping[str, Any], side: Side, method: str) -> bool:
    required = schema.get("required", False)
    if side is Side.REQUEST:
        return required is True or (isinstance(required, list) and method in required)
    return (
        side is Side.ANSWER
        and required is True
        and schema.get("type") not in ("integer", "number", "boolean")
    )


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\+?\w+\})", template)
    return re.compile("".join("[^/:]+" if part.startswith("{") else re.escape(part) for part in parts))


def _matches(template: str, path: str) -> bool:
    return _pattern(template).fullmatch(path.lstrip("/")) is not None


def _query_faults(pairs: Iterable[tuple[str, str]], known: Mapping[str, Any]) -> Iterator[str]:
    for name, text in pairs:
        if name not in known or known[name]["location"] != "query":
            yield f"the query has an unknown parameter {name}={text}"
            continue
        kind = known[name]["type"]
        value: object = text
        if kind in ("integer", "number", "boolean"):
            with contextlib.suppress(ValueError):
                value = json.loads(text.lower())  # Google's clients write True
        schema = converted(known[name], Side.REQUEST, "")
        for fault in Draft202012Validator(schema).iter_errors(value):
            yield f"the query's {name}: {fault.message}"
