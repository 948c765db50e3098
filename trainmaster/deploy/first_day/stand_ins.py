"""Stand-ins for personal details: the same detail gets the same stand-in in every document of one first day."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

PROJECT, NUMBER = "my-project", "123456789012"
SHORTEST = 4
"""Known texts of fewer characters would be found inside of words."""
_OWN_DOMAINS = ("example.com", f"{PROJECT}.iam.gserviceaccount.com")
_NOBODYS_PROJECTS = (PROJECT, NUMBER, "-", "_")
_SECRET_KEYS = frozenset({"authorization", "accesstoken", "access_token", "idtoken", "id_token"})
_DETAIL = re.compile(
    r"(?P<token>\bya29\.[\w.-]{8,4096}|\beyJ[\w-]{8,4096}\.[\w-]{8,4096}\.[\w-]{8,4096}|\bAIza[\w-]{35}|\bGOCSPX-[\w-]{20,64})"
    r"|(?P<email>[\w.%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b)"
    r"|(?P<project>(?<=\bprojects/)[a-z0-9:.-]{1,63})"
    r"|(?P<tenant>\b[a-z][a-z0-9]{9,28}-tp\b)"
    r"|(?P<unique>(?<![\w.])\d{21}(?![\w.]))"
    r"|(?P<ip>(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\w)|(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:.]*\w))"
)
"""What is a personal detail by its form. A tenant is Vertex AI's own project for one customer's jobs."""


class StandIns:
    """`known`: details that only the caller can know, with their stand-ins; the longest is replaced first."""

    def __init__(self, known: Mapping[str, str]) -> None:
        long_enough = {text: known[text] for text in known if len(text) >= SHORTEST}
        self._known = dict(sorted(long_enough.items(), key=lambda each: -len(each[0])))
        self._given: dict[str, dict[str, str]] = {}

    def replaced(self, value: Any) -> Any:  # Any: JSON
        """A copy of the JSON value with a stand-in for each detail, in keys too. Unknown fields pass."""
        match value:
            case str():
                return self.replaced_text(value)
            case Mapping():
                return {
                    self.replaced_text(str(key)): self._of_field(str(key), each)
                    for key, each in value.items()
                }
            case list() | tuple():
                return [self.replaced(each) for each in value]
        return value

    def replaced_text(self, text: str) -> str:
        for detail, stand_in in self._known.items():
            text = text.replace(detail, stand_in)
        return _DETAIL.sub(self._stand_in_for, text)

    def _of_field(self, key: str, value: Any) -> Any:  # Any: JSON
        if key.lower() in _SECRET_KEYS and isinstance(value, str):
            return self._numbered("token", value)
        return self.replaced(value)

    def _stand_in_for(self, found: re.Match[str]) -> str:
        kind, text = str(found.lastgroup), found.group()
        if _is_kept(kind, text):
            return text
        return self._numbered(kind, text)

    def _numbered(self, kind: str, text: str) -> str:
        given = self._given.setdefault(kind, {})
        if text not in given:
            given[text] = _FORMS[_form_of(kind, text)].format(len(given) + 1)
        return given[text]


_FORMS = {
    "token": "TOKEN-{}",
    "email": "person-{}@example.com",
    "account": "account-{}@another-project.iam.gserviceaccount.com",
    "project": "another-project-{}",
    "tenant": "tenant-{}-tp",
    "unique": "1{:020}",
    "ip": "2001:db8::{:x}",
}


def _form_of(kind: str, text: str) -> str:
    is_account = kind == "email" and text.endswith(".gserviceaccount.com")
    return "account" if is_account else kind


def _is_kept(kind: str, text: str) -> bool:
    """Whether the text only looks like a detail: it is a stand-in, Google's own, or means no machine of a network."""
    if kind == "email":
        name, _, domain = text.partition("@")
        is_agent = domain.startswith("gcp-sa-") or domain == "developer.gserviceaccount.com"
        return domain in _OWN_DOMAINS or (is_agent and NUMBER in name)
    if kind == "project":
        return text in _NOBODYS_PROJECTS
    if kind != "ip":
        return False
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return True
    return address.is_loopback or address.is_unspecified
