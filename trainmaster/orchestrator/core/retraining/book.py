"""All accepted rules in one object, so that two rules dropped at once cannot form an undetected loop.

schemas/rule_book.v1.schema.json

In a loop, rules start each other forever. One rule starts another when its runs meet the other's condition: a run of
its model succeeds, its model is promoted, or its runs write where the other watches for new data. Whether runs cause
alerts or push images cannot be known here, and age and schedules depend on time alone.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainmaster.orchestrator.core.documents.codec import decoded, encoded, json_line
from trainmaster.orchestrator.core.retraining.condition import Condition, Upstream, UpstreamEvent, members_of
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.rule import Rule

BOOK_OBJECT = "rules/book.json"
MAX_RULES = 1000
_PIECES = re.compile(r"\*+|.", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Book:
    """The accepted rules, by id."""

    schema: str = "rule_book.v1"
    rules: tuple[Rule, ...] = ()

    def find(self, rule_id: str) -> Rule | None:
        return next((rule for rule in self.rules if rule.rule_id == rule_id), None)

    def with_rule(self, rule: Rule) -> "Book":
        """The book with this rule in place of an older generation; a newer one stays."""
        present = self.find(rule.rule_id)
        if present is not None and present.generation >= rule.generation:
            return self
        rules = (*self.without(rule.rule_id).rules, rule)
        return Book(rules=tuple(sorted(rules, key=lambda entry: entry.rule_id)))

    def with_quarantined(self, rule: Rule) -> "Book":
        """The book with this rule, which is in quarantine, in place of the same generation of it."""
        present = self.find(rule.rule_id)
        is_there = present is not None and present.generation == rule.generation
        return self.without(rule.rule_id).with_rule(rule) if is_there else self

    def without(self, rule_id: str) -> "Book":
        return Book(rules=tuple(rule for rule in self.rules if rule.rule_id != rule_id))

    @property
    def size_bytes(self) -> int:
        return len(book_bytes(encoded(self)))


def book_bytes(document: object) -> bytes:
    """A book's document as it is stored: on one line, because every change writes it whole, and indenting takes longest."""
    return json_line(document).encode() + b"\n"


def parse_book(document: object) -> Book:
    """The book that `encoded` turned into `document`.

    Raises:
        ValueError: the document is not a rule book; the message says why.
    """
    try:
        book = decoded(Book, document)
        for rule in book.rules:
            rule.conditions, rule.while_running, rule.not_before, rule.blackout  # noqa: B018 - so that damage is found here
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a rule book: {type(error).__name__}: {error}") from error
    return book


@dataclass(frozen=True, kw_only=True)
class LoopStep:
    """Runs of `first` start `then` through its condition number `condition`, counted from 0."""

    first: str
    then: str
    condition: int
    how: str

    def __str__(self) -> str:
        return f"{self.first} -> {self.then}: {self.how}"


def loops_of(rules: Iterable[Rule], rule: Rule) -> list[tuple[LoopStep, ...]]:
    """The shortest loop through each condition of the rule that its runs would meet, directly or through other rules.

    `rule` replaces the rule with the same id. Disabled rules start nothing.
    """
    others = [other for other in rules if other.rule_id != rule.rule_id and other.enabled]
    if not rule.enabled:
        return []
    reached: dict[str, tuple[LoopStep, ...]] = {rule.rule_id: ()}
    closing: dict[int, tuple[LoopStep, ...]] = {}
    frontier = [rule]
    while frontier:
        nearer, frontier = frontier, []
        for first in nearer:
            way = reached[first.rule_id]
            for step in _steps(first, rule):
                closing.setdefault(step.condition, (*way, step))
            for other in others:
                if other.rule_id not in reached and (steps := _steps(first, other)):
                    reached[other.rule_id] = (*way, steps[0])
                    frontier.append(other)
    return [closing[condition] for condition in sorted(closing)]


def _steps(first: Rule, then: Rule) -> Sequence[LoopStep]:
    return [
        LoopStep(first=first.rule_id, then=then.rule_id, condition=index, how=how)
        for index, condition in enumerate(then.conditions)
        if (how := next(filter(None, (_how_met(first, then, one) for one in members_of(condition))), ""))
    ]


def _how_met(first: Rule, then: Rule, condition: Condition) -> str:
    """How runs of `first` meet the condition; empty if they do not."""
    match condition:
        case Upstream() if (condition.model_name, then.team) == (first.model_name, first.team):
            if condition.event is UpstreamEvent.SUCCEEDED:
                return f"{then.rule_id} waits for a run of {first.model_name} to succeed, which {first.rule_id} trains"
            if first.makes.promotes:
                return f"{then.rule_id} waits for {first.model_name} to be promoted, which {first.rule_id} trains"
        case NewData():
            for uri in first.all_writes_uris:
                if may_hold(condition.pattern, uri) and not condition.excludes_folder(uri):
                    return f"{then.rule_id} watches {condition.objects}, and runs of {first.rule_id} write under {uri}"
    return ""


def may_hold(pattern: str, directory_uri: str) -> bool:
    """Whether an object under the directory, `gs://…/`, could match the pattern.

    The directory's text is matched against the pattern's pieces; some object name matches whatever pieces remain. The
    places reached in the pattern are bits of one number, so a step costs the same for a pattern of many wildcards.
    """
    pieces = _PIECES.findall(pattern)
    at: dict[str, int] = {}
    for place, piece in enumerate(pieces):
        key = piece if len(piece) == 1 else piece[:2]
        at[key] = at.get(key, 0) | 1 << place
    any_text, in_folder = at.pop("**", 0), at.pop("*", 0)
    wildcards = any_text | in_folder
    reached = 1 | (wildcards & 1) << 1
    for char in directory_uri:
        stays = reached & (any_text if char == "/" else wildcards)
        reached = stays | (reached & at.get(char, 0)) << 1
        reached |= (reached & wildcards) << 1  # a wildcard also matches no text; two never stand side by side
        if not reached:
            return False
    return True
