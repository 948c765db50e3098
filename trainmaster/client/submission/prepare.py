"""A request file made ready: read, edited, its script packed, and checked as the service will check it."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.client.checking import (
    Kind,
    check_request,
    has_local_script,
    kind_of,
    order_command,
    too_large_file,
    with_archive_to_come,
)
from trainmaster.client.errors import Refused
from trainmaster.client.request_files import STDIN, is_json_file
from trainmaster.client.runs.origin import header_of
from trainmaster.client.submission.bounds import bounds_of
from trainmaster.client.submission.edits import (
    Edits,
    changed_paths,
    edited,
    find_spelled,
    new_request,
    option_of,
    setting_of,
)
from trainmaster.client.submission.pack import Packed, pack_script
from trainmaster.client.submission.scripts import unpacked_fault
from trainmaster.client.submission.syntax import syntax_problem
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, cut, is_within, listed
from trainmaster.orchestrator.core.documents.faults import Refused as RefusedRequest
from trainmaster.orchestrator.core.documents.placing import placed
from trainmaster.orchestrator.core.documents.values import Document, text_at
from trainmaster.orchestrator.core.names import (
    REQUEST_SUFFIXES,
    REQUESTS_PREFIX,
    in_team,
    is_object_name,
    is_temporary,
    model_name_from,
    object_uri,
    script_object,
)
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.requests.draft import SCRIPT
from trainmaster.orchestrator.core.requests.reading import OWN, dialect_of
from trainmaster.orchestrator.core.requests.request import Request, RequestRules

if TYPE_CHECKING:
    from trainmaster.client.context import Context

NO_FILE = ""
"""The name of a request that has no file: only a script."""
COMMAND_LINE = "command line"
SETTING_MAX_CHARS = 200
_QUOTE_IT = re.compile(r'quote it: ("[^"]*")')
_ELSEWHERE = {
    Kind.RULE: "a retraining rule. Apply it: trainmaster rules apply {file}",
    Kind.ORDER: "an order. Give it: {order}",
}


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """One request, ready to be sent if it has no faults.

    Attributes:
        file: its path, `-`, or NO_FILE.
        object_name: what it is called in the inbox.
        content: the text to send: the file's own, unless it was edited.
        team: whose request it is; None in a deployment without teams.
        packed: the script's archive, which is sent first.
        request: as the service will accept it; None if it has faults, or its script is not Python.
        not_python: why the script cannot be compiled, in lines for people. Of a script in an image of the request's
            own, whose Python may be newer, it is only a warning.
        bounds: a sentence with the most that it may cost, and how long it may run if that is the policy's choice.
    """

    file: str
    object_name: str
    content: bytes
    team: str | None = None
    packed: Packed | None = None
    request: Request | None = None
    faults: tuple[Fault, ...] = ()
    not_python: str | None = None
    bounds: str = ""

    @property
    def title(self) -> str:
        """What it is called when it is sent."""
        return self.file or self.object_name

    @property
    def faulty(self) -> str:
        """What has its faults: the file, or the options where there is none."""
        return self.file or COMMAND_LINE


def prepare(
    file: str,
    content: bytes,
    edits: Edits,
    *,
    context: "Context",
    rules: RequestRules,
    prices: Prices,
    is_message: bool = False,
) -> Prepared:
    """The request of a file, or of a script alone (`file` NO_FILE), with every fault at its place in the file.

    Args:
        file: its path, `-`, or NO_FILE.
        content: may be cut after one byte more than a request can have.
        edits: what options change; only in a request in our own dialect.
        context: where it will be sent.
        rules: of the deployment there, like `prices`.
        prices: for the cost caps.
        is_message: whether it will be published; then its file gives the model no name.

    Raises:
        Refused: it is a rule or an order, cannot be uploaded under its name, or cannot be edited; or the script of
            `edits` cannot be packed. That the file's script cannot be is one of the faults.
    """
    if (large := too_large_file(content)) is not None:
        return Prepared(file=file, object_name="", content=content, faults=large.faults)
    read = _read(file, content, edits)
    kind = kind_of(read.value)
    if kind is not Kind.REQUEST:
        raise Refused(f"{file} is {_ELSEWHERE[kind].format(file=file, order=order_command(read.value))}")
    own, team = read.value, rules.policy.team if rules.policy is not None else None
    packed: Packed | None = None
    unpacked: tuple[Fault, ...] = ()
    if isinstance(read.value, dict) and not read.faults and (edits.any or has_local_script(read.value)):
        read, packed, unpacked = _as_sent(file, read, read.value, edits, context=context, rules=rules)
        content = _text(file, content, read.value)
    not_python = syntax_problem(packed.script) if packed is not None else None
    object_name = _object_name(file, read.value, team)
    named = STDIN if is_message else file or object_name
    # A script that was not packed must not hide the other faults.
    request = check_request(named, with_archive_to_come(read, rules)[0], rules, prices=lambda: prices)
    found = request.faults if isinstance(request, RefusedRequest) else ()
    faults = (*unpacked, *_of_options(found, own, read.value, edits))
    # The trainer's image has the oldest Python that this package runs on: what does not compile here does not compile there.
    is_refused = not_python is not None and text_at(read.value, "image") is None
    return Prepared(
        file=file,
        object_name=object_name,
        content=content,
        team=team,
        packed=packed,
        request=request if isinstance(request, Request) and not faults and not is_refused else None,
        faults=faults,
        not_python=not_python,
        bounds=bounds_of(request, prices, is_local=context.state is not None)
        if isinstance(request, Request)
        else "",
    )


# Any: a parsed request that nothing has checked yet.
def _as_sent(
    file: str, read: Document, value: dict[str, Any], edits: Edits, *, context: "Context", rules: RequestRules
) -> tuple[Document, Packed | None, tuple[Fault, ...]]:
    """The edited document, which says where its script will be; the packed script; and why it could not be packed."""
    changed = _edited(file, value, edits)
    read = replace(read, value=changed, spelled=find_spelled(changed, read, edits))
    try:
        packed = _pack(file, changed, edits)
    except Refused as refused:
        if edits.script is not None:
            raise
        hidden = secret_lines(read, () if rules.policy is None else rules.policy.env.secrets)
        return read, None, placed([unpacked_fault(refused)], read, hidden)
    if packed is not None:
        team = rules.policy.team if rules.policy is not None else None
        changed[SCRIPT]["archive"] = object_uri(context.data_bucket, script_object(packed.sha256, team))
    return read, packed, ()


def _of_options(faults: Sequence[Fault], own: object, edited: object, edits: Edits) -> Iterator[Fault]:
    """The faults; one of a value that an option set has no place, for the file has another value there.

    It names the option, and stands once, even if the option set the same value for several roles.
    """
    paths = tuple(changed_paths(own, edited))
    seen = set[tuple[str, str, str]]()
    for fault in faults:
        if not any(is_within(fault.path, path) for path in paths):
            yield fault
            continue
        option = option_of(fault.path, edits)
        key = (option, fault.problem, fault.found)
        if not option:
            yield _of_setting(replace(fault, place=None), edited, edits)
        elif key not in seen:
            seen.add(key)
            yield replace(fault, source=option, place=None)


def _of_setting(fault: Fault, edited: object, edits: Edits) -> Fault:
    """The fault with the `--set` that gave the value, and a repair whose quotes survive a shell."""
    found = setting_of(fault.path, edited, edits) if isinstance(edited, dict) else None
    if found is None:
        return fault
    setting, path = found
    key = setting.text.partition("=")[0]
    quotes = _QUOTE_IT.match(fault.repair)
    repair = fault.repair
    if quotes and fault.path == path:
        repair = f"write {_set(f'{key}={quotes[1]}')}{fault.repair[quotes.end() :]}"
    elif quotes:
        repair = f"{quotes[0]}, and put single quotes around {key}=…{fault.repair[quotes.end() :]}"
    return replace(fault, source=_set(key if fault.is_secret else setting.text), repair=repair)


def _set(text: str) -> str:
    return f"--set {shlex.quote(cut(text, SETTING_MAX_CHARS))}"


def _read(file: str, content: bytes, edits: Edits) -> Document:
    if file == NO_FILE:
        return Document(value=new_request(edits))
    return parse_document(content, as_json=is_json_file(file, content))


# Any: values of a document that no schema has validated.
def _edited(file: str, document: dict[str, Any], edits: Edits) -> dict[str, Any]:
    dialect = dialect_of(document)
    if dialect is not OWN:
        raise Refused(
            f"Options that change a request need one in Trainmaster's own form, and {file} has the form {dialect.name!r}. "
            "Edit the file, or rewrite it: docs/reference/dialects.md"
        )
    changed = edited(document, edits)
    if isinstance(changed.get(SCRIPT), dict):
        changed[SCRIPT] = dict(changed[SCRIPT])
    return changed


def _pack(file: str, document: dict[str, Any], edits: Edits) -> Packed | None:
    if edits.script is not None:
        return pack_script(edits.script, include=edits.include)
    if not has_local_script(document):
        return None
    root = Path() if file == STDIN else Path(file).parent
    return pack_script(root / document[SCRIPT]["file"], root, include=edits.include)


def _text(file: str, content: bytes, document: object) -> bytes:
    """The changed document as the service will read a file of this name; YAML says from which content it was made."""
    import yaml

    if file not in (STDIN, NO_FILE) and is_json_file(file, content):
        return f"{json.dumps(document, indent=2, ensure_ascii=False)}\n".encode()
    head = "" if file in (STDIN, NO_FILE) else header_of(content)
    return f"{head}{yaml.safe_dump(document, sort_keys=False, allow_unicode=True)}".encode()


def _object_name(file: str, document: object, team: str | None) -> str:
    """`requests/`, the team's folder, and the file's name; without a file, the model's.

    Raises:
        Refused: the service would ignore a file of this name.
    """
    model = text_at(document, "model_name") if isinstance(document, dict) else None
    name = Path(file).name if file not in (STDIN, NO_FILE) else f"{model_name_from(model or 'request')}.yaml"
    object_name = f"{REQUESTS_PREFIX}{in_team(team, name)}"
    if not name.lower().endswith(REQUEST_SUFFIXES):
        raise Refused(f"{file}: the name of a request must end in {listed(REQUEST_SUFFIXES)}.")
    if is_temporary(object_name) or not is_object_name(object_name):
        raise Refused(f"{file}: the service ignores hidden and temporary files. Rename it.")
    return object_name


def check_names(prepared: Sequence[Prepared]) -> None:
    """Refuse files that would overwrite each other in the inbox.

    Raises:
        Refused: two files have one name.
    """
    names = [each.object_name for each in prepared]
    twice = [each.title for each in prepared if names.count(each.object_name) > 1]
    if twice:
        raise Refused(f"{', '.join(twice)} have the same name in the inbox. Submit them one after the other.")
