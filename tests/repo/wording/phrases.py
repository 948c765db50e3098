"""Phrases that a native English maintainer would not write, each with what to write instead.

A space matches any white space, so that a phrase is found across two lines. `be` at the start stands for each form
of the verb: "is wanted" and "was wanted" are one row.
"""

import re
from dataclasses import dataclass

PHRASES = {
    # A subject that hides.
    r"whoever|whomever": "name it: the process that, the caller that, the user who",
    r"somebody|anybody|everybody": "name it: another process, any client, every user",
    r"(?<!user\s)nobody": "name it: no process, no other attempt, no user",
    r"he|him|his": "it, its (a process); they, their (a person)",
    # Saying and telling.
    r"told": "reported, notified, given, configured; unless told otherwise → by default",
    r"tell(?:s|ing)?(?: \w+){0,2} of": "reports, notifies … about",
    r"hears?|heard|hearing": "receives, learns, gets the notice",
    r"says? of|said of": "says about",
    r"be said": "is reported, is stated",
    r"what be \w+ of": "what is known about …; or name the thing",
    r"nothing of": "none of, nothing about, nothing from",
    r"as (?:\w+ ){1,4}ha(?:s|ve) (?:it|them)": "as … defines it, as … documents it",
    # Being, going and coming.
    r"(?:goes|go|went|going) on record": "is recorded",
    r"(?:goes|go|went|gone|going) on(?! record)": "continues",
    r"(?<!it\s)(?:comes|come|came|coming) to(?! (?:an end|a stop|rest))": "reaches, becomes, ends up",
    r"(?:comes|come|came) again": "is redelivered, returns, is sent again",
    r"(?<!in\s)the way of": "the path of, how",
    r"what (?:becomes|become|became) of": "what happens to",
    r"stands? (?:there|at|beside|behind|in(?! for| the way))": "is",
    r"be not there": "does not exist, is missing",
    r"be of (?:a|an|another|no|the same)": "belongs to, has",
    r"be had": "is available",
    # Will, duty and need.
    r"be wanted|wanted here": "expected, required",
    r"wants": "expects, needs",
    r"be to be|be not to be": "must be, should be, will be",
    r"may not be (?:\w+ed|read|written|seen|sent|run|shown|taken)": "cannot be, must not be, is not allowed to be",
    r"(?:for )?want of": "for lack of, because … is missing",
    r"does? without": "does not need, works without",
    r"vouch(?:es|ed)?": "validates, validated",
    # Negation of a noun.
    r"(?<!there\s)be no (?!longer|more|other|less|one|such|need|room|different|better)": "is not a, is not",
    # Counts, order and time.
    r"so many(?! that)": "that many, this many, the number of",
    r"for so long": "for that long",
    r"the (?:more|fewer|less) the (?:better|more|less)": "higher is better",
    r"for ever": "forever, indefinitely",
    r"without end": "forever, indefinitely",
    r"anew": "again",
    r"a moment ago": "just",
    r"with time": "over time, eventually",
    # Verbs with a usual synonym.
    r"of (?:its|one's|their|our) own": "its own …, a separate …, a dedicated …",
    r"in (?:\w+ )?hands?": "being processed, claimed",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"pass(?:es|ed|ing)? over": "skip, ignore",
    r"be looked (?:at|for|after)(?: again)?": "is checked, is searched for, is inspected",
    r"be asked for": "is requested",
    r"(?:be|been|being) given up": "is abandoned, is dead-lettered; give up on …",
    r"h(?:eld|olds?) against": "compared with, checked against",
    r"tak(?:es?|en|ing) along": "includes, admits too",
    r"gets? to (?:see|know|hear)": "sees, learns",
    r"die[sd]? over": "crashed during",
    r"fought over": "contended",
    r"outlives a lost": "survives a lost",
    r"in (?:our|its|their|your) own (?:way|words)": "in the project's dialect",
    r"beforehand": "in advance",
}
_BE = r"(?:is|are|was|were|be|been|being)"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A phrase in a text: where it begins, as it stands there, and what to write instead."""

    offset: int
    phrase: str
    repair: str


def findings(text: str) -> list[Finding]:
    """The phrases in a text, in order. Of two that overlap, the one that begins first."""
    found: list[Finding] = []
    for match in _ANY.finditer(text):
        row = match.lastgroup or ""
        found.append(
            Finding(offset=match.start(), phrase=" ".join(match.group().split()), repair=_REPAIRS[row])
        )
    return found


def _pattern(phrase: str) -> str:
    with_forms = re.sub(r"(?<![\w ])be(?= )", lambda _: _BE, phrase)
    return with_forms.replace(" ", r"\s+")


_REPAIRS = {f"row{number}": repair for number, repair in enumerate(PHRASES.values())}
_ANY = re.compile(
    r"\b(?:"
    + "|".join(f"(?P<{row}>{_pattern(phrase)})" for row, phrase in zip(_REPAIRS, PHRASES, strict=True))
    + r")\b",
    re.IGNORECASE,
)
