"""References to container images, read by the grammar of the registries.

Source: https://github.com/distribution/reference, `reference.go` (2026-11). Two differences: hosts are in lower-case
letters, as in the schema of requests, and digests are SHA-256, the only algorithm of Artifact Registry.
"""

import re

_WORD = "[a-z0-9]+"
_LABEL = f"{_WORD}(?:-+{_WORD})*"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?"
_COMPONENT = rf"{_WORD}(?:(?:\.|__?|-+){_WORD})*"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?P<digest>@sha256:[0-9a-f]{64})?"
)


def repository(image: str) -> str:
    """The image without tag and digest; a port in the host stays. Empty if the text does not refer to an image."""
    found = _REFERENCE.fullmatch(image)
    return found["name"] if found is not None else ""


def has_digest(image: str) -> bool:
    """Whether the image is named by its digest, so that no push can replace it."""
    found = _REFERENCE.fullmatch(image)
    return found is not None and found["digest"] is not None
