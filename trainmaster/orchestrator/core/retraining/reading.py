"""A dropped rule, read and checked in full: either a valid rule or all of its faults."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from trainmaster.orchestrator.core.documents.document import Document, parse_document
from trainmaster.orchestrator.core.documents.faults import (
    Fault,
    PathPart,
    Refused,
    first_of_each_place,
    json_path,
    listed,
)
from trainmaster.orchestrator.core.documents.placing import faults_with_places
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.documents.values import Work, mapping_at, units
from trainmaster.orchestrator.core.names import (
    REQUESTS_PREFIX,
    RULES_PREFIX,
    TEMPLATES_PREFIX,
    Buckets,
    split_object_uri,
)
from trainmaster.orchestrator.core.policy.policy import Policy
from trainmaster.orchestrator.core.policy.teams import may_watch, template_folder
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.requests.placeholders import with_deployment
from trainmaster.orchestrator.core.requests.request import oversized_refusal
from trainmaster.orchestrator.core.retraining import request_check
from trainmaster.orchestrator.core.retraining.book import MAX_RULES, Book, loops_of
from trainmaster.orchestrator.core.retraining.condition import Condition, condition_from, placed_members
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.times.windows import window_faults
from trainmaster.orchestrator.core.sizes import MAX_BOOK_BYTES, MAX_RULE_BYTES

_SHORTEN = "put the request in its own file and name it with request_uri"
MAX_CONDITIONS = 10
"""As schemas/retraining_rule.v1.schema.json says; no more are checked."""
_RULE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
RULE_SCHEMA = "retraining_rule.v1"
"""`RequestRules.schemas` must hold this schema and the request's."""


def rule_id_of(object_name: str) -> str | None:
    """`rules/vision/Cassava.yaml` -> `vision.cassava`; None if the name gives no rule id.

    An id consists of at most 63 lower-case letters, digits, '.', '_' and '-'.
    """
    path = object_name.removeprefix(RULES_PREFIX).rpartition(".")[0]
    rule_id = path.replace("/", ".").lower()
    return rule_id if _RULE_ID.fullmatch(rule_id) else None


def parse_rule(
    content: bytes,
    *,
    dropped_name: str,
    generation: int,
    requirements: request_check.RuleRequirements,
    book: Book,
    template: bytes | Refused | None,
) -> Rule | Refused:
    """The rule in these bytes, or every fault: of text, schema, conditions, request, policy and loops.

    `template` is the content of the object at `template_uri`, or why it is not read; None if it is missing or the rule
    names none.
    """
    refusal = rule_too_large(len(content))
    if refusal is not None:
        return refusal
    read, policy, work = _read(content, dropped_name), requirements.requests.policy, Work()
    rule_id, team = rule_id_of(dropped_name), policy.team if policy is not None else None
    faults = [*_name_faults(dropped_name, rule_id, book), *read.faults]
    if not isinstance(read.value, dict):
        no_mapping = Fault(path="$", problem="a rule must be a mapping", value=read.value)
        return _refusal(faults if read.faults else [*faults, no_mapping], read, policy)
    value = mapping_at(with_deployment(read.value, requirements.requests.names))
    work.take(units(value))
    _add(faults, schema_faults(requirements.requests.schemas[RULE_SCHEMA], value, read.spelled))
    _add(faults, window_faults(value))
    _add(faults, _template_faults(value.get("request_uri"), requirements.buckets, team))
    when = value.get("when")
    conditions = _sound_conditions(when, faults, requirements)
    around = request_check.CheckContext(
        rule_id=rule_id or "rule",
        conditions=tuple(conditions.values()),
        all_sound=isinstance(when, list) and len(conditions) == len(when),
        requirements=requirements,
        work=work,
    )
    request, uri, checked = value.get("request"), value.get("request_uri"), request_check.Checked()
    if isinstance(request, dict):
        checked = request_check.inline_request(request, read.spelled, around)
    elif isinstance(uri, str) and all(fault.path != "$.request_uri" for fault in faults):
        checked = request_check.template_request(uri, template, around)
    _add(faults, checked.faults)
    if checked.makes is None:
        return _refusal(faults, read, policy)
    rule = Rule(
        rule_id=around.rule_id,
        dropped_name=dropped_name,
        generation=generation,
        makes=checked.makes,
        writes_uri=checked.writes_uri,
        placeholders=checked.placeholders,
        document=value,
        team=team,
    )
    _add(faults, _loop_faults(book, rule, tuple(conditions)))
    if not faults:
        _add(faults, _room_faults(book, rule, shares=len(policy.teams) or 1 if policy is not None else 1))
    return _refusal(faults, read, policy) if faults else rule


def rule_too_large(size_bytes: int) -> Refused | None:
    """The refusal of a rule that is too large, before any of it is read."""
    return oversized_rule(f"{size_bytes} bytes") if size_bytes > MAX_RULE_BYTES else None


def oversized_rule(found: str = "") -> Refused:
    """The same, for a rule of which only the beginning was read: its event gave a smaller size."""
    return oversized_refusal(what="a rule", at_most=MAX_RULE_BYTES, repair=_SHORTEN, found=found)


def _read(content: bytes, dropped_name: str) -> Document:
    return parse_document(content, as_json=dropped_name.lower().endswith(".json"), what="rule")


def template_uri(
    content: bytes, dropped_name: str, requirements: request_check.RuleRequirements
) -> str | None:
    """The `gs://` URI of the rule's request, which must be read before `parse_rule`.

    None if the rule names none, or one that it may not use.
    """
    requests = requirements.requests
    team = requests.policy.team if requests.policy else None
    value = _read(content, dropped_name).value if len(content) <= MAX_RULE_BYTES else None
    uri = with_deployment(value.get("request_uri"), requests.names) if isinstance(value, dict) else None
    faults = list(_template_faults(uri, requirements.buckets, team))
    return uri if isinstance(uri, str) and not faults else None


def _refusal(faults: Iterable[Fault], read: Document, policy: Policy | None) -> Refused:
    hidden = secret_lines(read, () if policy is None else policy.env.secrets)
    return Refused(faults=faults_with_places(sorted(set(faults)), read, hidden))


def _name_faults(dropped_name: str, rule_id: str | None, book: Book) -> Iterator[Fault]:
    if rule_id is None:
        yield Fault(
            path="$",
            problem="the file name is not a valid rule id",
            value=dropped_name,
            allowed="rules/….yaml, .yml or .json, of letters, digits, '.', '_', '-' and '/', "
            "beginning with a letter or digit, at most 63 characters between rules/ and the suffix",
            repair="rename the file",
        )
        return
    present = book.find(rule_id)
    if present is not None and present.dropped_name != dropped_name:
        yield Fault(
            path="$",
            problem=f"{present.dropped_name} already has the rule id {rule_id}",
            value=dropped_name,
            repair="rename this file; or delete the other, wait two minutes, and drop this one again",
        )


def _add(faults: list[Fault], found: Iterable[Fault]) -> None:
    """Add the faults at paths that no earlier check refused."""
    faults[:] = first_of_each_place((faults, found))


def _sound_conditions(
    when: object, faults: list[Fault], requirements: request_check.RuleRequirements
) -> dict[int, Condition]:
    """The valid conditions, by their number; faults that the schema cannot find are added to `faults`."""
    sound: dict[int, Condition] = {}
    for index, entry in enumerate(when[:MAX_CONDITIONS] if isinstance(when, list) else ()):
        reported, here = {fault.path for fault in faults}, json_path(("when", index))
        try:
            condition = condition_from(_without_faults(entry, here, reported))
        except ValueError:
            continue  # the schema reports it
        path = ("when", index, condition.kind)
        _add(faults, condition.faults(path, requirements.buckets))
        for place, member in placed_members(condition, path):
            _add(faults, _foreign_data(member, place, requirements.requests.policy))
        if not any(f"{fault.path}.".startswith((f"{here}.", f"{here}[")) for fault in faults):
            sound[index] = condition
    return sound


def _foreign_data(condition: Condition, path: tuple[PathPart, ...], policy: Policy | None) -> Iterator[Fault]:
    """The fault of watching data outside the team's folders, which would show it other teams' object names."""
    if isinstance(condition, NewData) and policy is not None and not may_watch(policy, condition.pattern):
        bucket = condition.objects.removeprefix("gs://").partition("/")[0]
        yield Fault(
            at=(*path, "objects"),
            problem=f"rules of the team {policy.team} may watch only the team's own data",
            value=condition.objects,
            allowed=f"gs://{bucket}/{policy.team}/…",
            repair="move the data into the team's folder, or ask for its prefix to be added to the team's "
            "shared_prefixes in the policy",
        )


def _without_faults(entry: object, path: str, reported: Collection[str]) -> object:
    """The condition without the fields that the schema refuses, so that the others are still checked."""
    if not isinstance(entry, dict):
        return entry
    return {
        kind: {
            name: text
            for name, text in fields.items()
            if not any(f"{fault}[".startswith(f"{path}.{kind}.{name}[") for fault in reported)
        }
        if isinstance(fields, dict)
        else [_without_faults(part, f"{path}.{kind}[{index}]", reported) for index, part in enumerate(fields)]
        if isinstance(fields, list)
        else fields
        for kind, fields in entry.items()
    }


def _template_faults(uri: object, buckets: Buckets, team: str | None) -> Iterator[Fault]:
    if not isinstance(uri, str):
        return
    try:
        bucket, name = split_object_uri(uri)
    except ValueError:
        bucket, name = "", ""
    taken, folder = name.startswith((REQUESTS_PREFIX, RULES_PREFIX)), template_folder(team)
    if bucket != buckets.inbox or not name or name.endswith("/") or taken or not name.startswith(folder):
        outside = "" if team is not None else f" outside {REQUESTS_PREFIX} and {RULES_PREFIX}"
        yield Fault(
            path="$.request_uri",
            problem="a request in this folder starts as soon as it is dropped"
            if taken
            else "a template cannot be stored there",
            value=uri,
            allowed=f"gs://{buckets.inbox}/{folder}…{outside}",
            repair=f"for example gs://{buckets.inbox}/{folder or TEMPLATES_PREFIX}{name.rpartition('/')[2] or 'request.yaml'}",
        )


def _loop_faults(book: Book, rule: Rule, numbers: tuple[int, ...]) -> Iterator[Fault]:
    """One fault for each condition that the rule's own output would meet; `numbers` are the valid conditions'."""
    when = [rule.document["when"][number] for number in numbers]
    probe = replace(rule, document={"when": when, "enabled": rule.enabled})
    for steps in loops_of(book.rules, probe):
        alone = len(steps) == 1
        yield Fault(
            at=("when", numbers[steps[-1].condition]),
            problem="the rule would fire on its own output"
            if alone
            else f"{len(steps)} rules would start each other in an endless loop",
            found="; ".join(str(step) for step in steps),
            repair="watch something that the rule's own runs do not write"
            if alone
            else f"break one of these steps: change this rule, or one of {listed(step.then for step in steps[:-1])}",
        )


def _room_faults(book: Book, rule: Rule, *, shares: int) -> Iterator[Fault]:
    """Why the rule does not fit. The book has a part for each team, so `shares` of them; 1: there are no teams."""
    counted = [other for other in book.without(rule.rule_id).rules if other.team in (rule.team, None)]
    others, most, most_bytes = Book(rules=tuple(counted)), MAX_RULES // shares, MAX_BOOK_BYTES // shares
    if len(others.rules) >= most:
        yield Fault(
            path="$",
            problem="too many rules",
            found=f"{len(others.rules)} rules",
            allowed=f"at most {most}",
            repair="delete rules that are no longer needed from the inbox",
        )
    elif others.with_rule(rule).size_bytes > most_bytes:
        yield Fault(
            path="$",
            problem="all rules together would be too large",
            found=f"{others.with_rule(rule).size_bytes} bytes",
            allowed=f"at most {most_bytes} bytes",
            repair=_SHORTEN,
        )
