"""Stand-ins for personal details: the same detail gets the same stand-in in every document of one first day."""

import re
from collections.abc import Mapping
from typing import Any

PROJECT, NUMBER = "my-project", "123456789012"
SHORTEST = 4
"""Known texts of fewer characters would be found inside of words."""
_FORMS = {
    "token": (
        r"\bya29\.[\w.-]{8,}|\beyJ[\w-]{8,4096}\.[\w-]{8,4096}\.[\w-]{8,}|\bAIza[\w-]{35}|\bGOCSPX-[\w-]{20,}",
        "TOKEN-{}",
    ),
    "email": (
        rf"(?<![\w.%+-])(?![\w.-]*{NUMBER})[\w.%+-]+@(?!{PROJECT}\.iam\.)(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}[A-Za-z]{{2,24}}\b",
        "person-{}@example.com",
    ),
    "project": (
        rf"(?<=\bprojects/)(?!(?:{PROJECT}|{NUMBER}|-)(?![\w:.-]))[a-z0-9:.-]{{1,63}}",
        "another-project-{}",
    ),
    "tenant": (r"\b[a-z][a-z0-9]{9,28}-tp\b", "tenant-{}-tp"),
    "unique": (r"(?<![\w.])\d{21}(?![\w.])", "1{:020}"),
    "ipv4": (r"(?<![\w.])(?!127\.|0\.0\.0\.0)\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\w)", "192.0.2.{}"),
    "ipv6": (
        r"(?<![\w:.])(?:(?:[0-9A-Fa-f]{1,4}:){1,7}(?::[0-9A-Fa-f]{1,4}){1,6}|(?:[0-9A-Fa-f]{1,4}:){3,7}[0-9A-Fa-f]{1,4})(?![\w:.])",
        "2001:db8::{:x}",
    ),
}
"""What is a personal detail by its form, with the form of its stand-in, which `format` fills with a number.

Kept are texts with the stand-in of the project or of its number, and addresses that mean this machine. A tenant is
Vertex AI's own project for one customer's jobs.
"""
_DETAIL = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, (pattern, _) in _FORMS.items()))


class StandIns:
    """`known`: details that only the caller can know, with their stand-ins; the longest is replaced first."""

    def __init__(self, known: Mapping[str, str]) -> None:
        in_order = sorted(known, key=len, reverse=True)
        self._known = {detail: known[detail] for detail in in_order if len(detail) >= SHORTEST}
        self._given: dict[str, dict[str, str]] = {}

    def replaced(self, value: Any) -> Any:  # Any: JSON
        """A copy of the JSON value with a stand-in for each detail, in keys too. Unknown fields pass."""
        match value:
            case str():
                for detail, stand_in in self._known.items():
                    value = value.replace(detail, stand_in)
                return _DETAIL.sub(self._stand_in_for, value)
            case Mapping():
                return {self.replaced(key): self.replaced(item) for key, item in value.items()}
            case list() | tuple():
                return [self.replaced(item) for item in value]
        return value

    def _stand_in_for(self, match: re.Match[str]) -> str:
        kind = str(match.lastgroup)
        given = self._given.setdefault(kind, {})
        return given.setdefault(match.group(), _FORMS[kind][1].format(len(given) + 1))
