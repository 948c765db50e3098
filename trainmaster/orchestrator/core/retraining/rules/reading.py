"""A dropped rule, read and checked whole: either a sound one or everything that is wrong with it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.orchestrator.core.admission.pricing import ReadPrices
from trainmaster.orchestrator.core.documents.document import Document, document_in
from trainmaster.orchestrator.core.documents.faults import Fault, fault_at, json_path, listed, shown
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.names import REQUESTS_PREFIX, RULES_PREFIX, Buckets, split_object_uri
from trainmaster.orchestrator.core.requests.request import Refused, Standards
from trainmaster.orchestrator.core.retraining.rules.book import MAX_BOOK_BYTES, MAX_RULES, Book
from trainmaster.orchestrator.core.retraining.rules.condition import Condition, condition_from
from trainmaster.orchestrator.core.retraining.rules.loop import loops_of
from trainmaster.orchestrator.core.retraining.rules.names import rule_id_of
from trainmaster.orchestrator.core.retraining.rules.request_check import (
    Checked,
    Circumstances,
    inline_request,
    template_request,
)
from trainmaster.orchestrator.core.retraining.rules.rule import Makes, Rule, rule_from
from trainmaster.orchestrator.core.retraining.rules.schedule import schedule_faults

MAX_RULE_BYTES = 64 * 1024
RULE_SCHEMA = "retraining_rule.v1"
"""`Standards.schemas` must hold it beside the request's schema."""


@dataclass(frozen=True, kw_only=True)
class _Drop:
    """The file and what it is held against."""

    rule_id: str
    dropped_name: str
    generation: int
    standards: Standards
    buckets: Buckets
    book: Book
    template: bytes | None
    prices: "ReadPrices | None"


def rule_in(
    content: bytes,
    *,
    dropped_name: str,
    generation: int,
    as_json: bool,
    standards: Standards,
    buckets: Buckets,
    book: Book,
    template: bytes | None,
    prices: "ReadPrices | None" = None,
) -> Rule | Refused:
    """The rule in these bytes, or every fault of text, schema, conditions, request, policy and loops at once.

    `template` is the content of the object that `template_uri` found named, or None where it is missing or
    none is named.
    """
    if len(content) > MAX_RULE_BYTES:
        return _refused(_too_large(len(content)))
    rule_id = rule_id_of(dropped_name)
    read = document_in(content, as_json=as_json)
    faults = [*_name_faults(dropped_name, rule_id, book), *read.faults]
    if not isinstance(read.value, dict):
        return _refused(*faults, *([] if read.faults else [_no_mapping(read.value)]))
    drop = _Drop(
        rule_id=rule_id or "rule",
        dropped_name=dropped_name,
        generation=generation,
        standards=standards,
        buckets=buckets,
        book=book,
        template=template,
        prices=prices,
    )
    return _checked(drop, read, _normal(read.value), faults)


def _too_large(size_bytes: int) -> Fault:
    return Fault(
        path="$",
        problem="the file is too large for a rule",
        found=f"{size_bytes} bytes",
        allowed=f"at most {MAX_RULE_BYTES} bytes",
        repair="put the request into a file of its own and name it with request_uri",
    )


def _no_mapping(found: object) -> Fault:
    return fault_at((), "a rule is a mapping of keys to values", found=found)


def template_uri(content: bytes, *, as_json: bool, buckets: Buckets) -> str | None:
    """The `gs://` URI of the object which the rule takes its request from, to be read before `rule_in`.

    None where the rule names none, or none that it may name.
    """
    value = document_in(content, as_json=as_json).value if len(content) <= MAX_RULE_BYTES else None
    uri = value.get("request_uri") if isinstance(value, dict) else None
    return uri if isinstance(uri, str) and not list(_template_faults(uri, buckets)) else None


def _refused(*faults: Fault) -> Refused:
    return Refused(faults=tuple(sorted(set(faults))))


def _name_faults(dropped_name: str, rule_id: str | None, book: Book) -> Iterator[Fault]:
    if rule_id is None:
        yield Fault(
            path="$",
            problem="the file's name gives no rule id",
            found=shown(dropped_name),
            allowed="rules/….yaml, .yml or .json, of letters, digits, '.', '_', '-' and '/', "
            "beginning with a letter or digit, at most 63 characters between rules/ and the suffix",
            repair="rename the file",
        )
        return
    present = book.find(rule_id)
    if present is not None and present.dropped_name != dropped_name:
        yield Fault(
            path="$",
            problem=f"{present.dropped_name} has the rule id {rule_id} already",
            found=shown(dropped_name),
            repair="rename this file; or remove the other, wait two minutes, and drop this one again",
        )


def _normal(value: dict[str, Any]) -> dict[str, Any]:
    """The document with `manual:` and `manual: {}` meaning the same."""
    when = value.get("when")
    if not isinstance(when, list):
        return value
    return {**value, "when": [{"manual": {}} if each == {"manual": None} else each for each in when]}


def _checked(drop: _Drop, read: Document, value: dict[str, Any], faults: list[Fault]) -> Rule | Refused:
    when = value.get("when")
    _add(faults, schema_faults(drop.standards.schemas[RULE_SCHEMA], value, read.spelled))
    _add(faults, _condition_faults(when, drop.buckets))
    _add(faults, _template_faults(value.get("request_uri"), drop.buckets))
    conditions = _sound_conditions(when, faults)
    around = Circumstances(
        conditions=tuple(conditions.values()),
        all_sound=isinstance(when, list) and len(conditions) == len(when),
        rule_id=drop.rule_id,
        models_bucket=drop.buckets.models,
        standards=drop.standards,
        prices=drop.prices,
    )
    checked = _request(drop, value, read, around, {fault.path for fault in faults})
    _add(faults, checked.faults)
    return _sound(drop, value, checked, tuple(conditions), faults)


def _sound(
    drop: _Drop, value: dict[str, Any], checked: Checked, conditions: tuple[int, ...], faults: list[Fault]
) -> Rule | Refused:
    """The rule, if its request is known well enough, it closes no loop, and the book has room for it."""
    if checked.makes is None:
        return _refused(*faults)
    if conditions:
        when = [value["when"][index] for index in conditions]
        probe = _rule(drop, {"when": when, "enabled": value.get("enabled", True)}, checked, checked.makes)
        _add(faults, _loop_faults(drop.book, probe, conditions))
    if faults:
        return _refused(*faults)
    rule = _rule(drop, value, checked, checked.makes)
    _add(faults, _room_faults(drop.book, rule))
    return _refused(*faults) if faults else rule


def _add(faults: list[Fault], found: Iterable[Fault]) -> None:
    """Add what was found at places that no earlier check refused."""
    reported = {fault.path for fault in faults}
    faults.extend(fault for fault in found if fault.path not in reported)


def _condition_faults(when: object, buckets: Buckets) -> Iterator[Fault]:
    """What the schema cannot say about conditions; what has the wrong type is passed over."""
    for index, entry in enumerate(when if isinstance(when, list) else ()):
        for kind, fields in entry.items() if isinstance(entry, Mapping) else ():
            path = ("when", index, str(kind))
            if not isinstance(fields, Mapping):
                continue
            if kind == "schedule":
                yield from schedule_faults(fields.get("cron"), fields.get("time_zone"), path)
            elif kind == "new_data":
                yield from _watched_faults(fields.get("objects"), json_path((*path, "objects")), buckets)


def _watched_faults(objects: object, path: str, buckets: Buckets) -> Iterator[Fault]:
    try:
        bucket, _ = split_object_uri(objects) if isinstance(objects, str) else ("", "")
    except ValueError:
        return
    if bucket in (buckets.inbox, buckets.ledger):
        kept = "requests and rules" if bucket == buckets.inbox else "records"
        yield Fault(
            path=path,
            problem=f"the service keeps its {kept} in this bucket, and no rule may watch it",
            found=shown(objects),
            repair="watch the bucket that the data comes to",
        )


def _template_faults(uri: object, buckets: Buckets) -> Iterator[Fault]:
    if not isinstance(uri, str):
        return
    try:
        bucket, name = split_object_uri(uri)
    except ValueError:
        bucket, name = "", ""
    taken = name.startswith((REQUESTS_PREFIX, RULES_PREFIX))
    if bucket != buckets.inbox or not name or name.endswith("/") or taken:
        yield Fault(
            path="$.request_uri",
            problem="a request is started as soon as it is dropped there"
            if taken
            else "no place for a template",
            found=shown(uri),
            allowed=f"gs://{buckets.inbox}/… outside {REQUESTS_PREFIX} and {RULES_PREFIX}",
            repair=f"for example gs://{buckets.inbox}/templates/{name.rpartition('/')[2] or 'request.yaml'}",
        )


def _sound_conditions(when: object, faults: Collection[Fault]) -> dict[int, Condition]:
    """The conditions without a fault, by their number."""
    sound: dict[int, Condition] = {}
    for index, entry in enumerate(when if isinstance(when, list) else ()):
        here = f"$.when[{index}]"
        if not any(f"{fault.path}.".startswith((f"{here}.", f"{here}[")) for fault in faults):
            sound[index] = condition_from(entry)
    return sound


def _request(
    drop: _Drop, value: Mapping[str, Any], read: Document, around: Circumstances, reported: Collection[str]
) -> Checked:
    request, uri = value.get("request"), value.get("request_uri")
    if isinstance(request, dict):
        return inline_request(request, read.spelled, around)
    if isinstance(uri, str) and "$.request_uri" not in reported:
        return template_request(uri, drop.template, around)
    return Checked()


def _rule(drop: _Drop, value: Mapping[str, Any], checked: Checked, makes: Makes) -> Rule:
    return rule_from(
        value,
        rule_id=drop.rule_id,
        dropped_name=drop.dropped_name,
        generation=drop.generation,
        makes=makes,
        writes_uri=checked.writes_uri,
        places=checked.places,
    )


def _loop_faults(book: Book, rule: Rule, numbers: tuple[int, ...]) -> Iterator[Fault]:
    """One fault for each condition that the rule's own output would meet; `numbers` are theirs in the file."""
    for steps in loops_of(book.rules, rule):
        alone = len(steps) == 1
        yield Fault(
            path=json_path(("when", numbers[steps[-1].condition])),
            problem="the rule would fire on its own output"
            if alone
            else f"{len(steps)} rules would start each other without end",
            found="; ".join(str(step) for step in steps),
            repair="watch something that the rule's own runs do not make"
            if alone
            else f"break one of these steps: change this rule, or one of {listed(step.then for step in steps[:-1])}",
        )


def _room_faults(book: Book, rule: Rule) -> Iterator[Fault]:
    others = book.without(rule.rule_id)
    if len(others.rules) >= MAX_RULES:
        yield Fault(
            path="$",
            problem="there is no room for another rule",
            found=f"{len(others.rules)} rules",
            allowed=f"at most {MAX_RULES}",
            repair="remove rules that are no longer needed from the inbox",
        )
    elif others.with_rule(rule).size_bytes > MAX_BOOK_BYTES:
        yield Fault(
            path="$",
            problem="the rules together would be too large",
            found=f"{others.with_rule(rule).size_bytes} bytes",
            allowed=f"at most {MAX_BOOK_BYTES} bytes",
            repair="put the request into a file of its own and name it with request_uri",
        )
