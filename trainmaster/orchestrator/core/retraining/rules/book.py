"""Every accepted rule in one object, so that two rules dropped at once cannot make a loop unseen.

schemas/rule_book.v1.schema.json
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.retraining.rules.filling import Place
from trainmaster.orchestrator.core.retraining.rules.loop import loops_of
from trainmaster.orchestrator.core.retraining.rules.rule import Makes, Rule, rule_from

MAX_RULES = 1000
MAX_BOOK_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Book:
    """The accepted rules, by id."""

    rules: tuple[Rule, ...] = ()

    def find(self, rule_id: str) -> Rule | None:
        return next((rule for rule in self.rules if rule.rule_id == rule_id), None)

    def with_rule(self, rule: Rule) -> "Book":
        """The book with this rule in place of an older generation; a newer one stays."""
        present = self.find(rule.rule_id)
        if present is not None and present.generation >= rule.generation:
            return self
        rules = (*self.without(rule.rule_id).rules, rule)
        return Book(rules=tuple(sorted(rules, key=lambda each: each.rule_id)))

    def without(self, rule_id: str) -> "Book":
        return Book(rules=tuple(rule for rule in self.rules if rule.rule_id != rule_id))

    @property
    def document(self) -> dict[str, object]:
        return {"schema": "rule_book.v1", "rules": [_entry(rule) for rule in self.rules]}

    @property
    def size_bytes(self) -> int:
        return len(json.dumps(self.document))


def _entry(rule: Rule) -> dict[str, object]:
    return {
        "rule_id": rule.rule_id,
        "dropped_name": rule.dropped_name,
        "generation": rule.generation,
        "makes": encoded(rule.makes),
        "writes_uri": rule.writes_uri,
        "places": [encoded(place) for place in rule.places],
        "document": rule.document,
    }


def book_in(document: object) -> Book:
    """The book that `Book.document` wrote.

    Raises:
        ValueError: the document holds no book; the message says why.
    """
    try:
        return Book(rules=tuple(_rule(entry) for entry in document["rules"]))  # type: ignore[index]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"no rule book: {type(error).__name__}: {error}") from error


# Any: what `_entry` wrote; anything else is an error that `book_in` tells.
def _rule(entry: Mapping[str, Any]) -> Rule:
    return rule_from(
        entry["document"],
        rule_id=entry["rule_id"],
        dropped_name=entry["dropped_name"],
        generation=entry["generation"],
        makes=decoded(Makes, entry["makes"]),
        writes_uri=entry["writes_uri"],
        places=decoded(tuple[Place, ...], entry["places"]),
    )


def loop_with(book: Book, rule: Rule) -> tuple[str, ...] | None:
    """The first loop that this rule would close in the book, one text for each step; None without one.

    Each text names the rule that starts the next one, and how: `a -> b: b waits for …`.
    A disabled rule closes no loop: it is checked again when it is dropped enabled.
    """
    loops = loops_of(book.rules, rule)
    return tuple(str(step) for step in loops[0]) if loops else None
