"""Drops, fires, pauses, resumes and removes rules: a pause sets `enabled` in a rule's file, and drops the file again."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused, NotFound, TimedOut
from trainmaster.client.find import read_document
from trainmaster.client.records import read_bytes
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.rules.listing import list_rules, read_book, read_state, read_status
from trainmaster.client.rules.orders import give_order
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.kinds import FileKind
from trainmaster.client.submission.sender import sender_metadata
from trainmaster.client.submission.source import RequestSource
from trainmaster.client.submission.terms import Terms
from trainmaster.client.wait import poll
from trainmaster.orchestrator.core.documents.codec import json_bytes
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.values import text_at
from trainmaster.orchestrator.core.names import RULES_PREFIX, in_team, record_object, split_object_uri
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.state import RuleStanding, RuleStatus
from trainmaster.orchestrator.core.runs.drop_status import HELD
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES, MAX_RULE_BYTES

_ENABLED = re.compile(r"^(enabled[ \t]*:[ \t]+)[^\s#]+", re.MULTILINE)


def examined_rules(
    clients: Clients, terms: Terms, sources: Iterable[RequestSource], edits: Edits
) -> list[Examination]:
    """Each rule as the service would take it after those before it, loops among them included.

    Reads the rule book and the requests that the rules name; changes nothing.
    """

    def read_template(uri: str) -> bytes | None:
        return read_bytes(clients.storage, *split_object_uri(uri), MAX_REQUEST_BYTES)

    terms = replace(terms, book=read_book(clients), read_template=read_template)
    examined: list[Examination] = []
    for source in sources:
        examined.append(examination_of(source, terms, edits, expected=FileKind.RULE))
        if (rule := examined[-1].rule) is not None:
            terms = replace(terms, book=terms.book.with_rule(rule))
    return examined


def drop_rule(
    clients: Clients, name: str, content: bytes, *, if_generation: int | None = None, timeout_s: float
) -> RuleStatus:
    """Write the rule's file to the inbox under this name, and return its status once this version is answered.

    `if_generation`: only in place of this version.

    Raises:
        ClientRefused: another version took the place of that one meanwhile.
        TimedOut: the service has not answered in time; the rule stays in the inbox, and will be.
    """
    from google.api_core.exceptions import PreconditionFailed

    blob = clients.storage.bucket(clients.context.inbox_bucket).blob(name)
    blob.metadata = sender_metadata(clients)
    try:
        blob.upload_from_string(content, if_generation_match=if_generation)
    except PreconditionFailed as error:
        raise ClientRefused(_changed_meanwhile(name)) from error

    def is_answer(status: RuleStatus | None) -> bool:
        is_newer = status is not None and status.generation >= int(blob.generation)
        return is_newer and status is not None and status.state is not RuleStanding.RETRYING

    status = poll(clients.context, lambda: read_status(clients, name), is_answer, timeout_s=timeout_s)
    if status is None or not is_answer(status):
        why = status.reason if status is not None and status.reason else "the service has not answered"
        raise TimedOut(f"{name} is uploaded, but after {timeout_s:g} s: {why}. See: trainmaster rules ls")
    return status


def _changed_meanwhile(name: str) -> str:
    """The refusal to replace a version of the file that was not read."""
    return f"{name} changed at the same time, so it was left as it is. Try again."


@dataclass(frozen=True, kw_only=True)
class RuleChanges:
    """The rules to apply and those to remove, with a line about each."""

    wanted: tuple[Examination, ...]
    removed: tuple[FoundRule, ...]
    lines: tuple[str, ...]


def rule_changes(clients: Clients, rules: Sequence[Examination], team: str | None) -> RuleChanges:
    """The changes after which the rules, or those of the team, are exactly these sound ones. Changes nothing.

    A rule in force with the same content is left alone, also in quarantine.

    Raises:
        NotFound, google.api_core.exceptions.GoogleAPICallError: as `list_rules`.
    """
    own, names = f"{RULES_PREFIX}{in_team(team, '')}", {rule.object_name for rule in rules}
    found = {each.dropped_name: each for each in list_rules(clients) if each.has_file}
    wanted = [rule for rule in rules if not _is_in_force(rule, found.get(rule.object_name))]
    removed = [each for name, each in found.items() if name.startswith(own) and name not in names]
    verbs = ["change" if rule.object_name in found else "add" for rule in wanted]
    lines = [f"{verb} {rule.object_name}" for verb, rule in zip(verbs, wanted, strict=True)]
    lines += [f"remove {each.dropped_name}" for each in removed]
    return RuleChanges(wanted=tuple(wanted), removed=tuple(removed), lines=tuple(lines))


def _is_in_force(rule: Examination, found: FoundRule | None) -> bool:
    if found is None or found.status is None or found.rule is None or rule.rule is None:
        return False
    is_taken = found.status.state not in (RuleStanding.REFUSED, RuleStanding.RETRYING)
    hashes = [each.template and each.template.sha256 for each in (found.rule, rule.rule)]
    return is_taken and found.rule.document == rule.rule.document and len(set(hashes)) == 1


def fire_rule(clients: Clients, rule: FoundRule, *, timeout_s: float) -> str:
    """Fire the rule now, and return the id of the run that it started.

    Raises:
        RuleRemoved: its file is deleted.
        ClientRefused: `fire_refusal`, or the service, refuses it.
        RuleHeld: a limit, or its last run, holds the rule back.
        TimedOut: the service has not answered in time.
    """
    if refusal := fire_refusal(rule):  # the service would carry out the order, and start nothing
        raise ClientRefused(refusal) if rule.has_file else RuleRemoved(refusal)
    team = rule.rule.team if rule.rule is not None else None
    try:
        order_id, status = give_order(clients, {"fire": {"rule": rule.name}}, team=team, timeout_s=timeout_s)
    except ClientRefused as error:
        inbox = clients.storage.bucket(clients.context.inbox_bucket)
        if inbox.get_blob(rule.dropped_name) is not None:
            raise
        raise RuleRemoved(fire_refusal(replace(rule, has_file=False))) from error
    if status["state"] == HELD:
        raise RuleHeld(str(status.get("reason") or "it is held back"))
    if (run_id := run_fired_by(clients, rule.name, order_id)) is not None:
        return run_id
    raise TimedOut(f"{rule.name} was fired, but other firings followed. See: trainmaster ls")


def run_fired_by(clients: Clients, rule_id: str, order_id: str) -> str | None:
    """The run that the order started, if it is one of the rule's last two; None if other firings followed."""
    state = read_state(clients, rule_id)
    for firing in (state.firing, state.last) if state is not None else ():
        record = read_document(clients, record_object(firing.run_id)) if firing is not None else None
        if firing is not None and text_at(record, "source", "event_id") == order_id:
            return firing.run_id
    return None


def fire_refusal(rule: FoundRule) -> str:
    """Why the rule cannot be fired by an order; empty if it can."""
    if not rule.has_file:
        return (
            f"The rule {rule.name} is removed, so it cannot fire. Bring it back: trainmaster rules apply FILE"
        )
    if rule.rule is None:
        return f"{rule.name} is not accepted yet, so it cannot fire. See: trainmaster rules show {rule.name}"
    if not rule.decides:
        return f"{rule.name} may not fire: it is {rule.standing}. Resume it: trainmaster rules resume {rule.name}"
    if not any(each.kind is ConditionKind.MANUAL for each in rule.rule.members):
        return f"{rule.name} accepts no orders to fire: add `manual: {{}}` to its `when`."
    return ""


class RuleHeld(Exception):
    """The rule starts no run now; the message says why."""


class RuleRemoved(RuleHeld):
    """The rule's file is deleted."""


def remove_rule(clients: Clients, rule: FoundRule) -> None:
    """Delete the rule's file; the service retires the rule at its next tick, within about a minute.

    Raises:
        NotFound: the file is gone already.
    """
    from google.api_core.exceptions import NotFound as ObjectNotFound

    try:
        clients.storage.bucket(clients.context.inbox_bucket).delete_blob(rule.dropped_name)
    except ObjectNotFound as error:
        raise NotFound(
            f"{rule.dropped_name} is deleted already; its rule retires within a minute."
        ) from error


def pause_refusal(rule: FoundRule, *, enabled: bool) -> str:
    """Why the rule cannot be paused, or with `enabled` resumed, now; empty if it can."""
    if not rule.has_file:
        return f"The file of {rule.name} is deleted; the rule retires within a minute."
    if not _is_accepted(rule):
        return (
            f"The file of {rule.name} is not accepted, so it is not changed. "
            "Correct it, and drop it again: trainmaster rules apply FILE"
        )
    if is_already(rule, enabled=enabled):
        return f"{rule.name} is {'not paused' if enabled else 'paused already'}."
    return ""


def is_already(rule: FoundRule, *, enabled: bool) -> bool:
    """Whether the accepted rule is paused, or with `enabled` may fire, so that nothing needs to change."""
    if rule.rule is None or not rule.has_file or not _is_accepted(rule):
        return False
    return rule.decides if enabled else not rule.rule.document.get("enabled", True)


def _is_accepted(rule: FoundRule) -> bool:
    status = rule.status
    return rule.rule is not None and status is not None and status.state is not RuleStanding.REFUSED


def with_enabled(content: bytes, *, enabled: bool, as_json: bool) -> bytes:
    """The rule's file with `enabled` set, and everything else, comments included, as it was.

    Raises:
        ClientRefused: the file is not a mapping, or not written so that one line can be changed safely.
    """
    before = parse_document(content, as_json=as_json).value
    if isinstance(before, dict):
        wanted = {**before, "enabled": enabled}
        # JSON has no comments to keep, and a YAML file may hold JSON.
        is_json = as_json or parse_document(content, as_json=True).value == before
        changed = json_bytes(wanted) if is_json else _as_yaml(content.decode("utf-8-sig"), enabled=enabled)
        if parse_document(changed, as_json=as_json).value == wanted:
            return changed
    value = json.dumps(enabled)
    raise ClientRefused(
        f"`enabled` cannot be changed safely in this file. Write `enabled: {value}` into it, "
        "and drop it again: trainmaster rules apply FILE"
    )


def _as_yaml(text: str, *, enabled: bool) -> bytes:
    value = json.dumps(enabled)
    changed, count = _ENABLED.subn(lambda found: f"{found[1]}{value}", text, count=1)
    if not count:
        changed = f"{text.rstrip()}\nenabled: {value}\n"
    return changed.encode()


def set_enabled(clients: Clients, rule: FoundRule, *, enabled: bool, timeout_s: float) -> RuleStatus:
    """Pause the rule or, with `enabled`, resume it, and return its status once the service has accepted the file.

    Raises:
        ClientRefused: `pause_refusal` or `with_enabled` refuses it, the service does, or the file changes at the same time.
        NotFound: the file is gone.
        TimedOut: the service has not answered in time; the file stays in the inbox.
    """
    if refusal := pause_refusal(rule, enabled=enabled):
        raise ClientRefused(refusal)
    blob = clients.storage.bucket(clients.context.inbox_bucket).get_blob(rule.dropped_name)
    if blob is None:
        raise NotFound(f"{rule.dropped_name} does not exist any more.")
    generation = int(blob.generation)
    content = read_bytes(clients.storage, blob.bucket.name, blob.name, MAX_RULE_BYTES, generation=generation)
    if content is None:
        raise ClientRefused(_changed_meanwhile(rule.dropped_name))
    changed = with_enabled(content, enabled=enabled, as_json=rule.dropped_name.lower().endswith(".json"))
    status = drop_rule(clients, rule.dropped_name, changed, if_generation=generation, timeout_s=timeout_s)
    if status.state is RuleStanding.REFUSED:
        raise ClientRefused("\n".join(status.problems or (status.reason or "the service refuses the file",)))
    return status


def data_note(rule: Examination) -> str | None:
    """A note about a rule that waits for new data and does not pass their names to its runs; None for any other rule."""
    version = rule.rule
    if version is None or version.request is None or not version.new_data:
        return None
    if any(placeholder.name.startswith("data.") for placeholder in version.placeholders):
        return None
    return (
        f"{rule.title} waits for new data, but its request uses no placeholder such as ${{data.manifest_uri}}: "
        "its runs do not learn what is new. A program that reads all data needs none."
    )
