"""Validates a document against a JSON Schema: every fault with its path and likely repair."""

import copy
import functools
import json
import math
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from trainmaster.orchestrator.core.documents.faults import (
    FOUND_MAX_CHARS,
    MAX_COLLECTED,
    Fault,
    PathPart,
    Suggestions,
    cut,
    hint,
    is_within,
    json_path,
    nearest,
    plain,
    quote_it,
    shown,
    unknown_key,
    without_echoes,
)
from trainmaster.orchestrator.core.documents.values import parse_seconds, whole
from trainmaster.orchestrator.core.names import LABEL_MAX_CHARS

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}

_PLAIN = re.compile(r"(gs://)?[A-Za-z_][A-Za-z0-9_./*-]{0,199}")
"""A text that YAML reads as a string, also between braces."""
_NUMERAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_COMMAND_LINES = (("args",), ("command",))
_EXPONENT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]{1,3}")
_MACHINE = "#/$defs/machine"
_NOT_IN_LABELS = re.compile(r"[^\w-]+")


def schema_faults(
    schema: Mapping[str, Any],
    document: object,
    spelled: Mapping[str, str] | None = None,
    suggestions: Suggestions | None = None,
) -> list[Fault]:
    """All faults, sorted by path; `spelled` is as in `Document`.

    Checks that repeat share their `suggestions`.

    A misspelt key is one fault: the correct key is not also reported as missing. The schema's `misplaced` names the
    right place for keys that users expect elsewhere, and its `synonyms` the allowed value for words of other libraries;
    JSON Schema ignores them. Of a document with more than MAX_COLLECTED faults some are left out.

    The fault takes what is allowed from the schema's `description` of the value, and its text from the schema's
    `problem` and `repair`, two keywords of ours that JSON Schema ignores. So is `repaired_as: label`.

    Modifies the document: 50.0 becomes 50 if the schema requires an integer. JSON Schema accepts it as an integer, but
    later code must not find a float there. It stays 50.0 if the schema requires a number. The text 1e-5, which YAML 1.1
    does not read as a number, becomes one if the schema requires one, and 3 among the words of a command line a text.

    A list of mappings in place of a mapping, or a mapping in place of a list, is one fault; all else is checked as if it
    were the other.
    """
    validator, suggestions, spelled = _validator()(schema), suggestions or Suggestions(), spelled or {}
    while _made_fit(document, errors := _errors(validator, document), spelled):
        pass
    errors.sort(key=lambda error: json_path(error.absolute_path))  # as a report lists them
    opened = [(error, *meaning) for error in errors for meaning in _opened_containers(error)]
    outer = [error for error, *_ in opened] or errors
    faults = [fault for error in outer for fault in _faults(error, spelled, suggestions)]
    if opened:
        other, known = copy.deepcopy(document), {fault.path for fault in faults}
        for error, meant, _ in opened:
            _put(other, error.absolute_path, meant)
        moves = dict(moved for *_, moved in opened)
        for fault in schema_faults(schema, other, spelled, suggestions):
            is_echo = fault.path in known and fault.problem == _LIMITS["minItems"][0]
            if not is_echo and moves.get(fault.path) not in known:
                faults.append(fault.moved(functools.partial(_written_path, moves)))
    return sorted(without_echoes(faults))


# Any: jsonschema's validators are typed so.
def _errors(validator: Any, document: object) -> list["ValidationError"]:
    return list(islice(validator.iter_errors(document), MAX_COLLECTED))


def _opened_containers(error: "ValidationError") -> Iterator[tuple[object, tuple[str, str]]]:
    """What a container of the wrong kind means, if anything, and where that is in it and in the text.

    Of several mappings in a list, the first that has a key counts.
    """
    value: Any = error.instance
    schema: Any = error.schema
    where = json_path(error.absolute_path)
    match error.validator, error.validator_value:
        case "type", "array" if isinstance(value, dict):
            yield [value], (f"{where}[0]", where)
        case "type", "object" if isinstance(value, list) and "properties" in schema and error.absolute_path:
            parts = [part for part in value if isinstance(part, dict)]
            if parts:
                meant = {key: one for part in reversed(parts) for key, one in part.items()}
                yield meant, (where, f"{where}[0]" if len(value) == 1 else where)


def _written_path(moves: Mapping[str, str], path: str) -> str:
    above = next((above for above in moves if is_within(path, above)), None)
    return path if above is None else moves[above] + path.removeprefix(above)


# Any: the document at a path that jsonschema found in it, so it can be written to.
def _put(document: Any, path: Iterable[PathPart], value: object) -> None:
    *above, last = path
    functools.reduce(operator.getitem, above, document)[last] = value


# Any: as above.
def _made_fit(document: Any, errors: Sequence["ValidationError"], spelled: Mapping[str, str]) -> bool:
    """Replace values by what they mean where that is of the kind that the schema requires; whether any was."""
    made = False
    for error in errors:
        meant = _meant(error, spelled) if error.validator in ("type", "pattern") else error.instance
        if meant is not error.instance and error.absolute_path:
            _put(document, error.absolute_path, meant)
            made = True
        made = _made_fit(document, error.context or (), spelled) or made
    return made


# Any: as in _faults.
def _meant(error: "ValidationError", spelled: Mapping[str, str]) -> object:
    """50 for 50.0, the number for 1e-5, and for a word of a command line its text, unless that was written otherwise."""
    value: Any = error.instance
    schema: Any = error.schema
    path, kinds = tuple(error.absolute_path), schema.get("type", ())
    if kinds == "string" and isinstance(value, bool | int | float) and path[-2:-1] in _COMMAND_LINES:
        text = json.dumps(value)
        return text if spelled.get(json_path(path), text) == text else value
    is_numeral = isinstance(value, str) and _EXPONENT.fullmatch(value) is not None
    number = whole(float(value) if is_numeral and math.isfinite(float(value)) else value)
    fits = "number" in kinds or ("integer" in kinds and isinstance(number, int))
    return number if fits else value


@functools.cache
def _validator() -> Any:
    """Draft 2020-12, but `$` matches only at the very end, not before a final newline, and floats are not integers.

    A text that is longer than its schema allows is refused for that alone, without a search for a pattern.
    """
    # Imported late: a duplicate event never needs it, and its start must be fast.
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def pattern(_: object, wanted: str, text: object, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
        if not isinstance(text, str) or len(text) > schema.get("maxLength", len(text)):
            return
        if not re.search(_whole(wanted), text):
            yield ValidationError(f"{text!r} does not match {wanted!r}")

    integers = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    return extend(Draft202012Validator, {"pattern": pattern}, type_checker=integers)  # type: ignore[no-untyped-call]  # its stubs lack it


def _whole(pattern: str) -> str:
    return pattern[:-1] + r"\Z" if pattern.endswith("$") and not pattern.endswith(r"\$") else pattern


# Any: jsonschema's errors carry values of the schema and the document.
def _faults(
    error: "ValidationError", spelled: Mapping[str, str], suggestions: Suggestions
) -> Iterator[Fault]:
    path: tuple[PathPart, ...] = tuple(error.absolute_path)
    value: Any = error.instance
    rule: Any = error.validator_value
    schema: Any = error.schema
    match error.validator:
        case "additionalProperties" if rule is False:
            known = schema.get("properties", {})
            for key in sorted(set(value) - set(known)):
                fault = unknown_key(key, parents=path, known=known, present=value, suggestions=suggestions)
                if name := str(schema.get("$id", "")).rpartition(":")[2]:
                    where = f" in all: schemas/{name}.schema.json)"
                    fault = replace(fault, allowed=fault.allowed.replace(" in all)", where))
                yield _with_right_place(fault, path, schema.get("misplaced", {}).get(key), value)
        case "required":
            yield from _missing_keys(path, value, rule, error)
        case "dependentRequired":
            for key, needed in rule.items():
                for absent in sorted(set(needed) - set(value)) if key in value else ():
                    yield Fault(at=(*path, absent), problem=f"missing: {key} needs it")
        case "type":
            yield _wrong_kind(path, value, [rule] if isinstance(rule, str) else rule, spelled, schema)
        case _ if "propertyNames" in error.schema_path:
            # The value is the key itself, and jsonschema's path ends at its mapping.
            yield Fault(
                at=(*path, str(value)),
                problem="not a valid name",
                value=value,
                allowed=str(schema.get("description", rule)),
                repair=_repair(schema, value),
                is_key=True,
            )
        case "enum":
            text = value if isinstance(value, str) else ""
            words = [word for word in rule if isinstance(word, str)]
            near = hint(schema.get("synonyms", {}).get(text.lower(), "")) or nearest(text, words, suggestions)
            yield Fault(at=path, problem="not an allowed value", value=value, among=rule, repair=near)
        case "minimum" | "maximum" if isinstance(value, float) and schema.get("type") == "integer":
            pass  # it is refused for its kind
        case validator:
            yield _out_of_bounds(path, str(validator), value, rule, schema)


# Any: a mapping of the document.
def _with_right_place(fault: Fault, path: tuple[PathPart, ...], instead: str | None, value: Any) -> Fault:
    """The fault of an unknown key with the path of the key that has its place, if the schema's `misplaced` knows it."""
    if instead is None:
        return fault
    is_absent = "." not in instead and instead not in value
    return replace(fault, repair=hint(instead), meant=json_path((*path, instead)) if is_absent else "")


# Any: a value of the document, and of the schema.
def _out_of_bounds(
    path: tuple[PathPart, ...], validator: str, value: Any, rule: Any, schema: Mapping[str, Any]
) -> Fault:
    problem, meaning = schema.get("problem"), schema.get("description") or ""
    name, limit = _LIMITS.get(validator, ("not allowed", f"{validator} {{}}"))
    limit = limit.format(rule if isinstance(rule, str) else shown(rule))
    is_counted = validator in _COUNTED and not problem and rule > 0
    if (is_counted or (validator in _BOUNDS and not problem)) and str(rule) not in meaning:
        meaning = f"{limit.replace(' 1 entries', ' 1 entry')}{meaning and f': {meaning}'}"
    return Fault(
        at=path,
        problem=problem or name,
        found=("1 entry" if len(value) == 1 else f"{len(value)} entries") if is_counted else shown(value),
        allowed=meaning or ("" if problem else limit),
        repair=_repair(schema, value),
    )


# Any: a value of the document.
def _repair(schema: Mapping[str, Any], value: Any) -> str:
    """What the schema advises; of a label, the nearest text that is one: `feature/x` becomes `feature-x`."""
    if schema.get("repaired_as") != "label":
        return str(schema.get("repair", ""))
    label = _NOT_IN_LABELS.sub("-", value.lower())[:LABEL_MAX_CHARS].strip("-_")
    return f"write {label}" if label and label != value and _is_format_of(schema, label) else ""


_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"})
_COUNTED = frozenset({"minItems", "maxItems", "minProperties", "maxProperties"})
_LIMITS = {
    "pattern": ("not in the expected format", "text of the pattern {}"),
    "const": ("not the required value", "{}"),
    "minimum": ("too small", "at least {}"),
    "maximum": ("too large", "at most {}"),
    "exclusiveMinimum": ("too small", "more than {}"),
    "exclusiveMaximum": ("too large", "less than {}"),
    "minLength": ("too short", "at least {} characters"),
    "maxLength": ("too long", "at most {} characters"),
    "minItems": ("too few entries", "at least {} entries"),
    "maxItems": ("too many entries", "at most {} entries"),
    "minProperties": ("too few entries", "at least {} entries"),
    "maxProperties": ("too many entries", "at most {} entries"),
    "uniqueItems": ("duplicate entries", "each entry once"),
}
"""What is wrong, and what is allowed, for each keyword that limits a value."""


def _missing_keys(
    path: tuple[PathPart, ...], value: Mapping[str, Any], required: Sequence[str], error: "ValidationError"
) -> Iterator[Fault]:
    schema: Any = error.schema
    # jsonschema reports one error per missing key, each with the whole list.
    for key in required:
        if key not in value and error.message.startswith(repr(key)):
            meaning = schema.get("properties", {}).get(key, {}).get("description", "")
            yield Fault(at=(*path, key), problem=schema.get("problem", "missing"), allowed=meaning)


def _is_numeral(text: str, wanted: str) -> bool:
    """Whether the text without its quotes would be the number that is expected."""
    found = _NUMERAL.fullmatch(text)
    return found is not None and (wanted == "number" or (wanted == "integer" and not found[1]))


def _as_mapping(key: str, value: str, schema: Mapping[str, Any]) -> str:
    """`write script: {file: train.py}`, if the value is what the first required key expects and the others have a choice."""
    # A role needs a machine only where it names no GPU, so `then` requires it.
    required = (*schema.get("then", {}).get("required", ()), *schema.get("required", ()))
    first, *others = required or ("",)
    properties = schema.get("properties", {})
    choices = [_choices(properties.get(other, {})) for other in others]
    main = properties.get(first, {})
    is_text = main.get("type") == "string" or main.get("$ref") == _MACHINE
    if not is_text or not _PLAIN.fullmatch(value) or not all(choices):
        return ""
    chosen = list(zip(others, choices, strict=True))
    rest = "".join(f", {other}: {choice[0]}" for other, choice in chosen)
    instead = "".join(f", or {other}: {word}" for other, choice in chosen for word in choice[1:])
    return f"write {key}: {{{first}: {value}{rest}}}{instead}"


def _around_number(key: str, value: float, schema: Mapping[str, Any]) -> str:
    """`write workers: {count: 3, machine: …}`, if the value may be that of a required key."""
    required = (*schema.get("required", ()), *schema.get("then", {}).get("required", ()))
    properties = schema.get("properties", {})
    kinds = ("integer", "number") if isinstance(value, int) else ("number",)
    for name in required:
        of_key = properties.get(name, {})
        if of_key.get("type") in kinds and value >= of_key.get("minimum", value):
            rest = "".join(f", {other}: …" for other in required if other != name)
            return f"write {key}: {{{name}: {value}{rest}}}"
    return ""


def _is_format_of(schema: Mapping[str, Any], text: str) -> bool:
    """Whether the text would be a string that the schema allows."""
    is_short = schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", len(text))
    return is_short and re.search(_whole(schema.get("pattern", "")), text) is not None


def _choices(schema: Mapping[str, Any]) -> Sequence[object]:
    """The values that a schema lists, or the smallest number that it allows."""
    return schema.get("enum") or ([schema["minimum"]] if "minimum" in schema else [])


# Any: a JSON Schema.
def _wrong_kind(
    path: tuple[PathPart, ...],
    value: object,
    kinds: Sequence[str],
    spelled: Mapping[str, str],
    schema: Mapping[str, Any],
) -> Fault:
    where, wanted = json_path(path), kinds[0]
    # A dialect may have put another value where the text had a number.
    word = spelled.get(where, "") if isinstance(value, int | float) else ""
    repair = allowed = ""
    if wanted == "string" and isinstance(value, bool) and word:
        repair = f'YAML 1.1 reads an unquoted {word} as {str(value).lower()}; quote it: "{word}"'
    elif wanted == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        is_text = _is_format_of(schema, word or str(value))
        repair = quote_it(word or str(value)) if is_text else ""
        allowed = "" if is_text else str(schema.get("description", ""))
    elif wanted == "boolean" and isinstance(value, str):
        repair = "write true or false, without quotes"
    elif isinstance(value, str) and _is_numeral(value.strip(), wanted):
        repair = f"write {value.strip()} without quotes"
    elif (
        wanted in ("integer", "number") and isinstance(value, str) and "".join(map(str, path)).endswith("_s")
    ):
        seconds = parse_seconds(value)
        repair = f"write seconds: {seconds}" if seconds else "write seconds, for example 3600"
    elif wanted == "object" and isinstance(value, str) and path:
        repair = _as_mapping(str(path[-1]), value, schema)
    elif wanted == "object" and isinstance(value, int | float) and not isinstance(value, bool) and path:
        repair = _around_number(str(path[-1]), value, schema)
    elif wanted == "array" and isinstance(value, dict) and value:
        repair = f"write '- ' before {plain(next(iter(value)))}, and two spaces before the other keys"
    elif wanted == "array":
        repair = "write a list: one entry a line, each after '- '"
    elif wanted == "object" and isinstance(value, list):
        is_one = len(value) == 1 and "properties" in schema
        repair = "write it without '- '" if is_one else "write a mapping, NAME: VALUE, without '- '"
    return Fault(
        path=where,
        problem=schema.get("problem") or f"expected {' or '.join(_KINDS[kind] for kind in kinds)}",
        found=cut(word, FOUND_MAX_CHARS) or shown(value),
        allowed=allowed,
        # What the schema advises is about a value of another kind than a misread yes or no.
        repair=repair
        if repair and isinstance(value, bool)
        else "; ".join(filter(None, (repair, schema.get("repair")))),
    )
