"""A request as pasted text: checked, planned and submitted without a file, so that no file of this machine is packed."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from trainmaster.client.checking import (
    Checked,
    Kind,
    check,
    check_request,
    has_local_script,
    kind_of,
    with_archive_to_come,
)
from trainmaster.client.errors import Refused
from trainmaster.client.plan.making import full_plan, offline_plan
from trainmaster.client.plan.plan import Plan
from trainmaster.client.request_files import STDIN, buckets_of, is_json_file
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.prepare import Prepared, prepare
from trainmaster.client.submission.send import is_refused, problems_of, recorded, upload
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Refused as RefusedRequest
from trainmaster.orchestrator.core.names import REQUEST_SUFFIXES
from trainmaster.orchestrator.core.requests.request import Request, RequestRules
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.context import Context

NAME_MAX_CHARS = 200


@dataclass(frozen=True, kw_only=True)
class Pasted:
    """A text, and the name of the file that it came from; `-` without one."""

    file: str
    content: bytes
    """At most one byte more than a request can have."""

    @property
    def value(self) -> object:
        """The document in the text, unchecked."""
        return parse_document(self.content, as_json=is_json_file(self.file, self.content)).value

    @property
    def has_local_script(self) -> bool:
        """Whether its program is a script on the author's machine, which only `trainmaster submit FILE` can pack."""
        if len(self.content) > MAX_REQUEST_BYTES:
            return False
        value = self.value
        return isinstance(value, dict) and kind_of(value) is Kind.REQUEST and has_local_script(value)


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What is wrong with a text, and without faults what a request would become: its plan without a look at the ledger."""

    given: Pasted
    checked: Checked
    request: Request | None = None
    plan: Plan | None = None


def pasted(text: str, file: str = "") -> Pasted:
    """The text with the line ends that were typed: a browser's form sends CR LF.

    Raises:
        Refused: the file's name cannot be a request's.
    """
    name = PurePath(file.strip().replace("\\", "/")).name
    if len(name) > NAME_MAX_CHARS or (name and not name.lower().endswith(REQUEST_SUFFIXES)):
        raise Refused(
            f"The name of a request must end in {', '.join(REQUEST_SUFFIXES)}; found {name[:80]!r}."
        )
    content = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    return Pasted(file=name or STDIN, content=content[: MAX_REQUEST_BYTES + 1])


def examine(given: Pasted, context: "Context", rules: RequestRules, prices: Prices) -> Examined:
    """Every fault of the text, a request in any dialect, a rule or an order; and the plan of a sound request.

    The plan is the offline one: no service is asked.
    """
    checked = check(given.file, given.content, rules, buckets_of(context))
    if checked.faults or checked.kind is not Kind.REQUEST:
        return Examined(given=given, checked=checked)
    read = parse_document(given.content, as_json=is_json_file(given.file, given.content))
    request = check_request(given.file, with_archive_to_come(read, rules)[0], rules, prices=lambda: prices)
    if isinstance(request, RefusedRequest):  # for its cost at the deployment's prices
        return Examined(
            given=given,
            checked=Checked(
                file=checked.file, kind=checked.kind, faults=request.faults, not_checked=checked.not_checked
            ),
        )
    return Examined(
        given=given,
        checked=checked,
        request=request,
        plan=offline_plan(request, context, "as deployed", prices),
    )


def plan_examined(
    clients: "Clients", found: Examined, rules: RequestRules, prices: Prices, now: datetime
) -> Plan | None:
    """The plan with what the ledger shows now; None if the text has faults or holds something else than a request.

    Raises:
        Refused: the service would ignore a file of its name.
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    if found.request is None or found.plan is None:
        return None
    given = found.given
    name = "" if given.has_local_script else _prepared(clients, given, rules, prices).object_name
    return full_plan(clients, found.plan, found.request, rules.policy, object_name=name, key=None, now=now)


def submit_pasted(clients: "Clients", given: Pasted, rules: RequestRules, prices: Prices) -> tuple[str, bool]:
    """Upload the request, and wait until the service has recorded its run: the run's id, and whether it has.

    Raises:
        Refused: it has faults, is not a request, or needs a script of this machine; or the service refuses it.
        TimedOut: the service has not read the previous request of that name yet.
        google.api_core.exceptions.GoogleAPICallError: the inbox or the ledger cannot be read or written.
    """
    if given.has_local_script:
        raise Refused(
            "The request names a script of your machine, which must be packed and uploaded with it. "
            "Save the request beside the script, and run: trainmaster submit FILE"
        )
    prepared = _prepared(clients, given, rules, prices)
    if prepared.request is None:
        raise Refused("\n".join(map(str, prepared.faults)))
    sent = upload(clients, prepared)
    status = recorded(clients, sent)
    if status is not None and is_refused(status):
        raise Refused("\n".join(problems_of(status)))
    return sent.run_id, status is not None


def _prepared(clients: "Clients", given: Pasted, rules: RequestRules, prices: Prices) -> Prepared:
    return prepare(given.file, given.content, Edits(), context=clients.context, rules=rules, prices=prices)
