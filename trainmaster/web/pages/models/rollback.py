"""Restores an earlier champion, and says before what follows."""

import shlex
from collections.abc import Iterator

from trainmaster.client.rules.champions import roll_back
from trainmaster.client.shown.champion_lines import value_text
from trainmaster.orchestrator.core.champions.champion import Champion, Reign
from trainmaster.orchestrator.core.champions.promotion import after_rollback
from trainmaster.web.pages.models.found import address_of, champion_of, name_of
from trainmaster.web.subject import Ask, Field, Outcome, Proposal

ANSWER_WITHIN_S = 60.0


def propose_rollback(ask: Ask) -> Proposal:
    """Which champion would return, and what follows."""
    champion = champion_of(ask).champion
    name, to_run = name_of(champion), ask.query.get("to_run") or None
    restored = after_rollback(champion, to_run, order_id="", now=ask.now)
    reign = restored.current if isinstance(restored, Champion) else None
    words = ["trainmaster", "champions", "rollback", name, *(["--to-run", to_run] if to_run else [])]
    return Proposal(
        title=f"Roll back the champion of {name}?",
        effects=list(_effects(champion, reign)) if reign else [],
        command=shlex.join(words),
        button="Roll back",
        back=address_of(name),
        fields=[Field(name="to_run", label="Restore the run", value=reign.run_id, choices=[reign.run_id])]
        if reign
        else [],
        refusal=f"The champion stays: {restored}." if isinstance(restored, str) else "",
    )


def _effects(champion: Champion, restored: Reign) -> Iterator[str]:
    current = champion.current
    yield f"{restored.run_id} becomes champion again, with {value_text(restored)}; its copy is {restored.model_uri}"
    if current is not None:
        yield f"{current.run_id}, with {value_text(current)}, is champion no longer. Its copy stays."
    yield "Later runs are compared with the restored champion."
    yield "A notice trainmaster.champion.rolled_back.v1 is published, for whatever serves the model."


def rollback(ask: Ask) -> Outcome:
    """Gives the order, and waits until it is carried out."""
    champion = champion_of(ask).champion
    name = name_of(champion)
    found = roll_back(ask.source.clients, name, ask.form.get("to_run") or None, timeout_s=ANSWER_WITHIN_S)
    current = found.champion.current
    run_id = current.run_id if current else ""
    return Outcome(
        message=f"{run_id} is the champion of {name}.", go_to=address_of(name), document={"run_id": run_id}
    )
