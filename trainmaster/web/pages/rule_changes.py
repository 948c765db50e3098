"""The rule that an address names, and its changes: it is fired, paused or resumed, after a page says what follows."""

import shlex
from urllib.parse import quote

from trainmaster.client.rules.changing import fire_refusal, fire_rule, pause_refusal, set_enabled
from trainmaster.client.rules.found_rule import FoundRule, state_word
from trainmaster.client.rules.listing import find_rule
from trainmaster.client.shown.rule_lines import WHILE_RUNNING, limits_text
from trainmaster.orchestrator.core.names import drop_folder
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import ActionOutcome, Ask, Proposal

ANSWER_WITHIN_S = 60.0
NO_ID = "-"
"""In place of an id, for a file whose name gives none; the query then names the file."""


def address_of(rule: FoundRule) -> str:
    """The address of the page about the rule."""
    if rule.rule_id is not None:
        return f"/rules/{quote(rule.rule_id)}"
    return f"/rules/{NO_ID}?file={quote(rule.dropped_name, safe='')}"


def rule_of(ask: Ask) -> FoundRule:
    """The rule that the address names.

    Raises:
        NotFound: no rule has that id or file.
    """
    rule_id = ask.path["rule_id"]
    text = ask.query.get("file", rule_id) if rule_id == NO_ID else rule_id
    return ask.source.read(("rule", text), AnswerAge.SLOW, lambda clients: find_rule(clients, text))


def propose_firing(ask: Ask) -> Proposal:
    """What firing the rule would start."""
    found = rule_of(ask)
    version = found.rule
    return Proposal(
        title=f"Fire the rule {found.name}?",
        effects=[
            f"It starts a run of the model {version.model_name}, with the rule's request.",
            WHILE_RUNNING[version.while_running],
            f"The rule's limits apply: {limits_text(version)}.",
        ]
        if version
        else [],
        command=f"trainmaster rules fire {shlex.quote(found.name)}",
        button="Fire the rule",
        back=address_of(found),
        refusal=fire_refusal(found),
    )


def fire(ask: Ask) -> ActionOutcome:
    """Gives the order, and waits until the run has started."""
    found = rule_of(ask)
    run_id = fire_rule(ask.clients_of(drop_folder(found.dropped_name)), found, timeout_s=ANSWER_WITHIN_S)
    return ActionOutcome(
        message=f"{found.name} has started {run_id}.",
        go_to=f"/runs/{quote(run_id)}",
        document={"run_id": run_id},
    )


_EFFECTS = {
    False: (
        "Scheduled times, signals and orders are ignored until it is resumed, and objects that arrive are not counted.",
        "A run that it has started continues.",
    ),
    True: (
        "Its schedule starts now: what was due meanwhile is not made up for. Counts so far are kept.",
        "A quarantine ends.",
    ),
}
"""Of a rule's `enabled`."""


def propose_enabled(ask: Ask, *, enabled: bool) -> Proposal:
    """What pausing the rule or, with `enabled`, resuming it would do."""
    found, verb = rule_of(ask), "Resume" if enabled else "Pause"
    checked = ", and the file is checked again" if enabled else ""
    return Proposal(
        title=f"{verb} the rule {found.name}?",
        effects=[
            f"`enabled: {str(enabled).lower()}` is written into {found.dropped_name}{checked}.",
            *_EFFECTS[enabled],
        ],
        command=f"trainmaster rules {verb.lower()} {shlex.quote(found.name)}",
        button=f"{verb} the rule",
        back=address_of(found),
        refusal=pause_refusal(found, enabled=enabled),
    )


def change_enabled(ask: Ask, *, enabled: bool) -> ActionOutcome:
    """Writes the file, and waits for the service's answer."""
    found = rule_of(ask)
    status = set_enabled(
        ask.clients_of(drop_folder(found.dropped_name)), found, enabled=enabled, timeout_s=ANSWER_WITHIN_S
    )
    return ActionOutcome(
        message=f"{found.name} is {state_word(status.state)}.",
        go_to=address_of(found),
        document={"rule_id": found.rule_id, "state": str(status.state)},
    )
