"""A file checked as a deployment would check it, without submitting anything: a request, a rule or an order."""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from trainmaster.client.request_files import STDIN, is_json_file, shipped_prices
from trainmaster.orchestrator.core.admission.cost import ReadPrices, priced
from trainmaster.orchestrator.core.documents.document import Document, parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, Refused, Suggestions
from trainmaster.orchestrator.core.documents.placing import placed
from trainmaster.orchestrator.core.documents.values import at, text_at
from trainmaster.orchestrator.core.names import RULES_PREFIX, Buckets, model_name_from
from trainmaster.orchestrator.core.orders.order import ORDER_SCHEMA, parse_order
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.requests.draft import SCRIPT
from trainmaster.orchestrator.core.requests.incoming import is_order
from trainmaster.orchestrator.core.requests.reading import checked_request, with_places
from trainmaster.orchestrator.core.requests.request import Request, RequestRules, too_large
from trainmaster.orchestrator.core.requests.script import ARCHIVE_SUFFIX
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.reading import parse_rule, template_uri
from trainmaster.orchestrator.core.retraining.request_check import RuleRequirements
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES

_RULE_KEYS = frozenset({"when", "request", "request_uri"})
_TO_COME = (
    "the script, which `trainmaster {verb}` uploads (a file dropped into the inbox needs script.archive)"
)
_ORDER_COMMANDS = "trainmaster rules fire, champions rollback or cancel"
_EXIST = "whether images, packages, accounts and buckets exist"


class Kind(StrEnum):
    """What a file is, by its content."""

    REQUEST = "request"
    RULE = "rule"
    ORDER = "order"


_NOT_CHECKED: Mapping[Kind, tuple[str, ...]] = {
    Kind.REQUEST: (_EXIST, "quotas and free machines", "the runs and cost of the hour and the day"),
    Kind.RULE: (_EXIST, "the rules that a deployment already has, and loops with them", "what buckets hold"),
    Kind.ORDER: ("whether the rule, run or model exists",),
}


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The result of one file's check: accepted if it has no faults."""

    file: str
    kind: Kind
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    not_checked: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, object]:
        """The result as `trainmaster check -o json` prints it."""
        return {
            "file": self.file,
            "kind": str(self.kind),
            "accepted": not self.faults,
            "faults": [fault.document for fault in self.faults],
            "warnings": [fault.document for fault in self.warnings],
            "not_checked": list(self.not_checked),
        }


def check(file: str, content: bytes, rules: RequestRules, buckets: Buckets) -> Checked:
    """The file's kind and every fault that a deployment with these rules and buckets would report.

    `content` may be cut after one byte more than a request can have.
    """
    if (large := too_large_file(content)) is not None:
        return Checked(
            file=file,
            kind=Kind.REQUEST,
            faults=large.faults,
            not_checked=_NOT_CHECKED[Kind.REQUEST],
        )
    read = parse_document(content, as_json=is_json_file(file, content))
    kind = kind_of(read.value)
    match kind:
        case Kind.RULE:
            faults, also = _rule_faults(file, content, rules, buckets)
            return Checked(file=file, kind=kind, faults=faults, not_checked=(*also, *_NOT_CHECKED[kind]))
        case Kind.ORDER:
            return Checked(
                file=file, kind=kind, faults=_order_faults(read, rules), not_checked=_NOT_CHECKED[kind]
            )
        case Kind.REQUEST:
            read, to_come = with_archive_to_come(read, rules)
            request = check_request(file, read, rules)
            return Checked(
                file=file,
                kind=kind,
                faults=request.faults if isinstance(request, Refused) else (),
                warnings=() if isinstance(request, Refused) else request.warnings,
                not_checked=(*to_come, *_NOT_CHECKED[kind]),
            )


def too_large_file(content: bytes) -> Refused | None:
    """The refusal of a file that was read up to one byte more than a request can have: its size is not known."""
    refused = too_large(len(content))
    found = f"more than {MAX_REQUEST_BYTES} bytes"
    return refused and Refused(faults=tuple(replace(fault, found=found) for fault in refused.faults))


def with_archive_to_come(read: Document, rules: RequestRules) -> tuple[Document, tuple[str, ...]]:
    """The request with a sample archive if `trainmaster submit` has to upload its script, and what stays unchecked."""
    prefixes = rules.policy.script_prefixes if rules.policy else ()
    key = _script_key(read.value) if isinstance(read.value, dict) else ""
    if not (prefixes and isinstance(read.value, dict) and _is_local(read.value, key)):
        return read, ()
    archive = _archive_to_come(prefixes[0])
    document = {**read.value, key: {**read.value[key], "archive": archive}}
    return replace(read, value=document), (_TO_COME.format(verb="submit"),)


def _archive_to_come(prefix: str) -> str:
    return f"{prefix}/{'0' * 64}{ARCHIVE_SUFFIX}"


def with_rule_archive(file: str, content: bytes, archive: str) -> bytes:
    """The rule's file with this archive for its request's script; as it is if that script is not one of this machine.

    Comments are lost.
    """
    as_json = is_json_file(file, content)
    rule = parse_document(content, as_json=as_json).value
    request = rule.get("request") if isinstance(rule, dict) else None
    if not (isinstance(rule, dict) and isinstance(request, dict) and has_local_script(request)):
        return content
    script = {**request[SCRIPT], "archive": archive}
    changed = {**rule, "request": {**request, SCRIPT: script}}
    if as_json:
        return f"{json.dumps(changed, indent=2, ensure_ascii=False)}\n".encode()
    import yaml

    return yaml.safe_dump(changed, sort_keys=False, allow_unicode=True).encode()


def with_places_of(
    faults: Iterable[Fault], file: str, content: bytes, rules: RequestRules
) -> tuple[Fault, ...]:
    """The faults at their places in this file, which they were not found in."""
    read = parse_document(content, as_json=is_json_file(file, content))
    hidden = secret_lines(read, () if rules.policy is None else rules.policy.env.secrets)
    return placed((replace(fault, place=None) for fault in faults), read, hidden)


def has_local_script(document: Mapping[str, object]) -> bool:
    """Whether a request names a script of this machine, which is still to be uploaded."""
    return _is_local(document, SCRIPT)


def _is_local(document: Mapping[str, object], key: str) -> bool:
    return text_at(document, key, "file") is not None and at(document, key, "archive") is None


def _script_key(document: Mapping[str, object]) -> str:
    """The key of the request's script, or a misspelling of it, which has its own fault."""
    near = (key for key in document if isinstance(key, str) and Suggestions().find(key, (SCRIPT,)))
    return SCRIPT if SCRIPT in document else next(near, SCRIPT)


def kind_of(document: object) -> Kind:
    """What a document is; one that is neither a rule nor an order counts as a request."""
    if is_order(document):
        return Kind.ORDER
    is_rule = isinstance(document, dict) and not _RULE_KEYS.isdisjoint(document)
    return Kind.RULE if is_rule else Kind.REQUEST


def check_request(
    file: str,
    read: Document,
    rules: RequestRules,
    *,
    prices: ReadPrices = shipped_prices,
) -> Request | Refused:
    """The request as the service would accept it, with its cost if the policy asks for it, or every fault.

    The file's name is the model's if the request has none.
    """
    name = None if file == STDIN else model_name_from(Path(file).stem)
    request = priced(checked_request(read, rules, name=name), rules.policy, prices)
    return with_places(request, read, rules.policy)


def order_command(order: object) -> str:
    """The command that gives the order; the three verbs if the order does not say what it is about."""
    document = order if isinstance(order, Mapping) else {}
    rule, run = text_at(document, "fire", "rule"), text_at(document, "cancel", "run")
    model, to_run = text_at(document, "rollback", "model_name"), text_at(document, "rollback", "to_run")
    words = [
        *(["rules", "fire", rule] if rule else ()),
        *(["champions", "rollback", model] if model else ()),
        *(["--to-run", to_run] if model and to_run else ()),
        *(["cancel", run] if run else ()),
    ]
    is_one = len([each for each in (rule, model, run) if each]) == 1
    return shlex.join(["trainmaster", *words]) if is_one else _ORDER_COMMANDS


def _rule_faults(
    file: str, content: bytes, rules: RequestRules, buckets: Buckets
) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
    """The rule's faults, and what could not be checked."""
    given, prefixes = content, rules.policy.script_prefixes if rules.policy else ()
    content = with_rule_archive(file, given, _archive_to_come(prefixes[0])) if prefixes else given
    to_come = () if content is given else (_TO_COME.format(verb="rules apply"),)
    suffix = ".json" if is_json_file(file, content) else ".yaml"
    dropped = f"{RULES_PREFIX}{'rule' + suffix if file == STDIN else Path(file).name}"
    requirements = RuleRequirements(requests=rules, buckets=buckets, prices=shipped_prices)
    rule = parse_rule(
        content, dropped_name=dropped, generation=1, requirements=requirements, book=Book(), template=None
    )
    uri = template_uri(content, dropped, requirements)
    faults = rule.faults if isinstance(rule, Refused) else ()
    faults = faults if content is given else with_places_of(faults, file, given, rules)
    if uri is None:
        return faults, to_come
    # Only the service can read it; without it the rule has no request to check.
    known = tuple(fault for fault in faults if fault.path != "$.request_uri")
    return known, (f"the request {uri}: check its own file too",)


def _order_faults(read: Document, rules: RequestRules) -> tuple[Fault, ...]:
    order = parse_order(read, rules.schemas[ORDER_SCHEMA], "check", datetime.now(UTC))
    return placed(order.faults, read, secret_lines(read, ())) if isinstance(order, Refused) else ()
