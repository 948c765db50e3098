"""Finds the rule of a page, and its address."""

from urllib.parse import quote

from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.rules.listing import find_rule
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import Ask

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
