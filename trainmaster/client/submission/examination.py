"""The one answer to whether a request, a rule or an order is sound, and what would be sent.

`check` prints its faults, `plan` the jobs that it would make, `submit` sends it, and the console's page shows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainmaster.client.errors import ClientRefused
from trainmaster.client.runs.origin import inbox_name
from trainmaster.client.submission.edits import (
    NO_EDITS,
    Edits,
    edited_request,
    faults_with_options,
    find_spelled,
    new_request,
)
from trainmaster.client.submission.kinds import FileKind, kind_of, use_of
from trainmaster.client.submission.pack import Packed
from trainmaster.client.submission.project.skypilot import is_task, request_text
from trainmaster.client.submission.rule_doubts import rule_doubts
from trainmaster.client.submission.script import SENT, placed_faults, with_archives
from trainmaster.client.submission.source import NO_FILE, STDIN, RequestSource, UnusableFile, is_json_file
from trainmaster.client.submission.terms import Terms
from trainmaster.orchestrator.core.admission.candidates import parse_candidates
from trainmaster.orchestrator.core.admission.cost import estimate_of, with_follow_ups, with_price
from trainmaster.orchestrator.core.documents.document import Document
from trainmaster.orchestrator.core.documents.faults import Fault, listed
from trainmaster.orchestrator.core.documents.faults import Refused as RefusedDocument
from trainmaster.orchestrator.core.documents.placing import lines_of_fault
from trainmaster.orchestrator.core.documents.values import mapping_at, text_at
from trainmaster.orchestrator.core.names import (
    REQUEST_SUFFIXES,
    REQUESTS_PREFIX,
    RULES_PREFIX,
    in_team,
    is_object_name,
    is_temporary,
    model_name_from,
)
from trainmaster.orchestrator.core.orders.order import ORDER_SCHEMA, parse_order
from trainmaster.orchestrator.core.policy.currency import shown_bound
from trainmaster.orchestrator.core.requests.checks.programs import program_warnings
from trainmaster.orchestrator.core.requests.checks.tuning import goal_warnings
from trainmaster.orchestrator.core.requests.draft import SCRIPT, Draft
from trainmaster.orchestrator.core.requests.placeholders import starts_in
from trainmaster.orchestrator.core.requests.reading import OWN, checked_request, dialect_of, with_places
from trainmaster.orchestrator.core.requests.request import Request, oversized_refusal
from trainmaster.orchestrator.core.retraining.reading import oversized_rule, parse_rule, template_uri
from trainmaster.orchestrator.core.retraining.request_check import RuleRequirements
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.runs.record import Estimate
from trainmaster.orchestrator.core.runs.sender import Commit
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES

COMMAND_LINE = "command line"
NEWER_THAN_ANY = 2**63 - 1
"""The generation under which a rule is examined, so that it takes the place of the version in the book."""
_EXIST = "whether images, packages, accounts and buckets exist"
_NOT_CHECKED = {
    FileKind.REQUEST: (_EXIST, "quotas and free machines", "the runs and cost of the hour and the day"),
    FileKind.RULE: (
        _EXIST,
        "the rules that a deployment already has, and loops with them",
        "what buckets hold",
    ),
    FileKind.ORDER: ("whether the rule, run or model exists",),
}
_TO_COME = (
    "the script, which `trainmaster {verb}` uploads (a file dropped into the inbox needs script.archive)"
)
_STARTS = "the model of --start_from, which is looked up when the run is accepted; without a champion, it starts as built"


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What a text is, everything that is wrong with it, and what becomes of it; it is sound without faults.

    Attributes:
        source: the text as it was given.
        terms: what it was examined against.
        kind: by its content.
        value: the document as it was given, which nothing has validated.
        faults: each at its place in the text, or with the option that gave the value.
        warnings: doubts about a sound request or rule.
        not_checked: what only the services know.
        content: the text to send: the given one, unless options or a script changed it.
        object_name: what a request or a rule is called in the inbox.
        packed: the script's archive, which is sent first.
        evaluator: that of the script that scores the model.
        local_scripts: which of them are on the machine that the text comes from. Without its archive, only a sound one
            that is submitted there can be sent.
        request: as the service will accept it; None with faults, and for a rule or an order.
        rule: the same for a rule; a fault of its script does not count.
        expected: what the verb takes.
        commit: of the files of an earlier run, which are sent again.
        forced: why the verb would have refused it without --force.
    """

    source: RequestSource
    terms: Terms
    kind: FileKind = FileKind.REQUEST
    value: object = None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    not_checked: tuple[str, ...] = ()
    content: bytes = b""
    object_name: str = ""
    packed: Packed | None = None
    evaluator: Packed | None = None
    local_scripts: frozenset[str] = frozenset()
    request: Request | None = None
    rule: Rule | None = None
    expected: FileKind = FileKind.REQUEST
    commit: Commit | None = None
    forced: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it is called when it is sent."""
        return self.source.file or self.object_name

    @property
    def faulty(self) -> str:
        """What has its faults: the file, or the options where there is none."""
        return self.source.file or COMMAND_LINE

    @property
    def has_local_script(self) -> bool:
        """Whether the script of the run itself is on the machine that the text comes from."""
        return SCRIPT in self.local_scripts

    @property
    def archives(self) -> tuple[Packed, ...]:
        """What is sent first: two scripts of one folder have one archive."""
        found = filter(None, (self.packed, self.evaluator))
        return tuple({packed.sha256: packed for packed in found}.values())

    @property
    def refusal(self) -> str:
        """Why the verb cannot send it, in lines for people; empty if it can."""
        if self.kind is not self.expected:
            return f"{self.faulty} is {use_of(self.kind, self.faulty)}"
        if self.faults:
            return "\n".join(line for fault in self.faults for line in lines_of_fault(fault, self.faulty))
        if len(self.local_scripts) > sum(packed is not None for packed in (self.packed, self.evaluator)):
            return (
                "The request names a script of your machine, which must be packed and uploaded with it. "
                "Save the request beside the script, and run: trainmaster submit FILE"
            )
        return ""

    @property
    def bound(self) -> Estimate | None:
        """What the dearest of the request and its fallbacks may cost at most, for all its runs. None: it has faults."""
        if self.request is None:
            return None
        machines = () if self.terms.policy is None else self.terms.policy.machines
        document, prices = self.request.document, self.terms.prices
        found = estimate_of(parse_candidates(document), prices, machines)
        found = with_follow_ups(found, document, document["region"], self.terms.policy, prices)
        return replace(found, at_most=None if found.at_most is None else found.at_most * self.request.runs)

    @property
    def bounds(self) -> str:
        """A sentence with the most that the dearest of the request and its fallbacks may cost, and the policy's time limit.

        Without a part where a price is unknown, or where the user chose the limit; empty if nothing is left.
        """
        request, found = self.request, self.bound
        if request is None or found is None:
            return ""
        is_default, parts = request.has_default_timeout, list[str]()
        subject, each, together = "It", "", ""
        if request.runs > 1:
            subject, each, together = f"Its {request.runs} runs", "each ", "together "
        if is_default:
            parts.append(f"{each}run for {request.document['scheduling']['timeout_s'] / 3600:g} h")
        if found.at_most is not None and not found.unknown:
            cloud = " in the cloud" if self.terms.context.state is not None else ""
            parts.append(f"{together}cost up to {shown_bound(found.at_most, found.currency)}{cloud}")
        repair = " Set another limit with --set scheduling.timeout_s=SECONDS" if is_default else ""
        return f"{subject} may {' and '.join(parts)}.{repair}" if parts else ""

    @property
    def document(self) -> dict[str, object]:
        """The result as `trainmaster check -o json` prints it."""
        return {
            "file": self.source.file,
            "kind": str(self.kind),
            "accepted": not self.faults,
            "faults": [fault.document for fault in self.faults],
            "warnings": [fault.document for fault in self.warnings],
            "not_checked": list(self.not_checked),
        }


def examination_of(
    source: RequestSource,
    terms: Terms,
    edits: Edits = NO_EDITS,
    *,
    is_message: bool = False,
    expected: FileKind = FileKind.REQUEST,
) -> Examination:
    """Whether the text is sound, and what would be sent. Reads the folder of its script; asks no service.

    Args:
        source: the text.
        terms: of the place that it would be sent to.
        edits: what options change; only in a request in our own dialect.
        is_message: whether it will be published; then its file gives the model no name.
        expected: what it is where nothing in it says, and what can be sent.

    Raises:
        ClientRefused: the options cannot change this request, or their script cannot be packed.
    """
    is_large = len(source.content) > MAX_REQUEST_BYTES
    read = Document(value=None)
    if not is_large:
        read = Document(value=new_request(edits)) if source.file == NO_FILE else source.read
    kind = kind_of(read.value, expected)
    blank = Examination(
        source=source,
        terms=terms,
        kind=kind,
        value=read.value,
        not_checked=_NOT_CHECKED[kind],
        expected=expected,
    )
    if is_large:
        return replace(
            blank, faults=(oversized_rule() if kind is FileKind.RULE else oversized_refusal()).faults
        )
    match kind:
        case FileKind.REQUEST:
            return _examined_request(blank, read, edits, is_message=is_message)
        case FileKind.RULE:
            return _examined_rule(blank, read, edits)
        case FileKind.ORDER:
            order = parse_order(read, terms.rules.schemas[ORDER_SCHEMA], "examined", datetime.now(UTC))
            faults = order.faults if isinstance(order, RefusedDocument) else ()
            return replace(blank, faults=placed_faults(faults, read, terms), content=source.content)


def _examined_request(blank: Examination, read: Document, edits: Edits, *, is_message: bool) -> Examination:
    source, terms, written = blank.source, blank.terms, read.value
    if isinstance(written, dict) and is_task(written):
        raise UnusableFile(request_text(written, blank.faulty))
    if isinstance(written, dict) and not read.faults and edits.any:
        read = _with_edits(source.file, read, written, edits)
    scripted = with_archives(mapping_at(read.value), source, terms, edits)
    if scripted.local:
        read = replace(read, value=scripted.request)
    if SCRIPT not in scripted.local and (edits.root or edits.launcher or edits.force):
        raise ClientRefused(
            f"{source.file or COMMAND_LINE}: --root, --launcher and --force are for a script that is packed, and this "
            "request names none. Write script: {file: train.py}, or --script train.py"
        )
    content = source.content
    if isinstance(read.value, dict) and read.value is not written:
        content = source.text_of(read.value)
    object_name = _object_name(source, read.value, terms.team)
    name = None if is_message or source.file == STDIN else model_name_from(Path(object_name).stem)
    outcome = with_price(checked_request(read, terms.rules, name=name), terms.policy, lambda: terms.prices)
    outcome = with_places(outcome, read, terms.policy)
    faults = [*outcome.faults] if isinstance(outcome, RefusedDocument) else []
    faults += placed_faults(scripted.faults_beside(faults), read, terms)
    faults = [*_name_faults(source, object_name), *faults_with_options(faults, written, read.value, edits)]
    request = outcome if isinstance(outcome, Request) else None
    doubts = placed_faults(scripted.warnings, read, terms)
    to_come = (_TO_COME.format(verb="submit"),) if scripted.local else ()
    if request is not None and any(starts_in(request.document)):
        to_come = (*to_come, _STARTS)
    return replace(
        blank,
        faults=tuple(faults),
        warnings=(*(request.warnings if request else ()), *doubts),
        not_checked=(*to_come, *blank.not_checked),
        content=content,
        object_name=object_name,
        packed=scripted.packed,
        evaluator=scripted.evaluator,
        local_scripts=scripted.local,
        request=None if faults else request,
        forced=tuple(doubt.problem for doubt in doubts if edits.force and doubt.repair == SENT),
    )


# Any: values of a document that no schema has validated.
def _with_edits(file: str, read: Document, value: dict[str, Any], edits: Edits) -> Document:
    """The document with the options' values.

    Raises:
        ClientRefused: it has another dialect, or as `edited_request`.
    """
    dialect = dialect_of(value)
    if dialect is not OWN:
        raise ClientRefused(
            f"Options that change a request need one in Trainmaster's own form, and {file} has the form {dialect.name!r}. "
            "Edit the file, or rewrite it: docs/reference/dialects.md"
        )
    changed = edited_request(value, edits)
    return replace(read, value=changed, spelled=find_spelled(changed, read, edits))


def _object_name(source: RequestSource, document: object, team: str | None) -> str:
    """`requests/`, the team's folder, and the file's `inbox_name`; without a file, the model's name."""
    model = text_at(document, "model_name") if isinstance(document, dict) else None
    name = Path(source.file).name if source.is_named else f"{model_name_from(model or 'request')}.yaml"
    name = inbox_name(name, model)
    return f"{REQUESTS_PREFIX}{in_team(team, name)}"


def _name_faults(source: RequestSource, object_name: str) -> Iterator[Fault]:
    """Why the service would ignore the file."""
    problem = ""
    if source.is_named and not object_name.lower().endswith(REQUEST_SUFFIXES):
        problem = f"the file's name must end in {listed(REQUEST_SUFFIXES)}"
    elif is_temporary(object_name) or not is_object_name(object_name):
        problem = "the service ignores hidden and temporary files"
    if problem:
        yield Fault(path="$", problem=problem, found=source.file, repair="rename it")


def _examined_rule(blank: Examination, read: Document, edits: Edits) -> Examination:
    source, terms = blank.source, blank.terms
    scripted = with_archives(mapping_at(read.value, "request"), source, terms, edits, ("request",))
    content = source.content
    if scripted.local:
        content = source.text_of({**mapping_at(read.value), "request": scripted.request})
    suffix = ".json" if is_json_file(source.file, content) else ".yaml"
    name = Path(source.file).name if source.is_named else f"rule{suffix}"
    object_name = f"{RULES_PREFIX}{in_team(terms.team, name)}"
    requirements = RuleRequirements(requests=terms.rules, buckets=terms.buckets, prices=lambda: terms.prices)
    uri = template_uri(content, object_name, requirements)
    outcome = parse_rule(
        content,
        dropped_name=object_name,
        generation=NEWER_THAN_ANY,
        requirements=requirements,
        book=terms.book,
        template=terms.read_template(uri) if uri is not None and terms.read_template is not None else None,
    )
    faults = outcome.faults if isinstance(outcome, RefusedDocument) else ()
    to_come: tuple[str, ...] = ()
    if scripted.local:
        faults = placed_faults((*faults, *scripted.faults_beside(faults)), read, terms)
        to_come = (_TO_COME.format(verb="rules apply"),)
    if uri is not None and terms.read_template is None:
        # Only the service can read it; without it the rule has no request to check.
        faults = tuple(fault for fault in faults if fault.path != "$.request_uri")
        to_come = (f"the request {uri}: check its own file too",)
    return replace(
        blank,
        faults=(*_name_faults(source, object_name), *faults),
        not_checked=(*to_come, *blank.not_checked),
        content=content,
        object_name=object_name,
        packed=scripted.packed,
        evaluator=scripted.evaluator,
        local_scripts=scripted.local,
        rule=outcome if isinstance(outcome, Rule) else None,
        warnings=placed_faults(_warnings_of(outcome), read, terms) if isinstance(outcome, Rule) else (),
    )


def _warnings_of(rule: Rule) -> Iterator[Fault]:
    """The warnings about the rule, and about the request in it at their paths in the rule."""
    yield from rule_doubts(rule)
    if rule.request is not None:
        meant = dialect_of(rule.request).in_own(rule.request, None)
        draft = Draft(document=meant.document)
        for fault in (*goal_warnings(draft), *program_warnings(draft)):
            yield fault.moved(lambda path: f"$.request{meant.written_path(path).removeprefix('$')}")
