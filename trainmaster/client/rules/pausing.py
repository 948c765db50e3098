"""Pauses and resumes rules: sets `enabled` in a rule's file, and drops the file again."""

import json
import re
from typing import TYPE_CHECKING

from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.records import read_bytes
from trainmaster.client.rules.changing import changed_meanwhile, drop_rule
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.orchestrator.core.documents.codec import json_bytes
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.retraining.state import RuleStanding, RuleStatus
from trainmaster.orchestrator.core.sizes import MAX_RULE_BYTES

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

_ENABLED = re.compile(r"^(enabled[ \t]*:[ \t]+)[^\s#]+", re.MULTILINE)


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


def set_enabled(clients: "Clients", rule: FoundRule, *, enabled: bool, timeout_s: float) -> RuleStatus:
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
        raise ClientRefused(changed_meanwhile(rule.dropped_name))
    changed = with_enabled(content, enabled=enabled, as_json=rule.dropped_name.lower().endswith(".json"))
    status = drop_rule(clients, rule.dropped_name, changed, if_generation=generation, timeout_s=timeout_s)
    if status.state is RuleStanding.REFUSED:
        raise ClientRefused("\n".join(status.problems or (status.reason or "the service refuses the file",)))
    return status
