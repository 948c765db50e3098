"""One sentence, with the likely repair, for each way in which pip fails."""

import os
import platform
import re
from pathlib import Path

from tools.set_up import refusals

_OTHER_FILE = re.compile(r"DO NOT MATCH THE HASHES.*?\n\s+(?P<package>\S+==\S+)", re.DOTALL)
_UNREACHED = re.compile(
    r"Could not fetch URL (?P<url>\S+): (?P<why>.*) - skipping"
    r"|connection broken by (?P<broken>.*)': /"
    r"|(?P<failed>(?:ReadTimeout|Protocol|Connection|SSL|HTTP|IncompleteRead)\w*(?:Error)?: .*)"
    r"|ERROR: (?P<http>HTTP error .*)"
)
_REASON = re.compile(
    r"\[Errno -?\d+\] [^'\")]+|\[SSL: [^\]]+\] [^'\"(]*\w|\d{3} (?:Client|Server) Error: [^:]*?(?= for url)"
)
_LOGIN = re.compile(r"EOF when reading a line|401 (?:Client )?Error")
_NO_WHEEL = re.compile(r"No matching distribution found for (?P<package>\S+)")
_REFUSED = re.compile(
    r"^(?:ERROR: .*|\w+Error: )\[Errno (?P<number>\d+)\] [^:\n]+: '(?P<path>[^'\n]+)'", re.MULTILINE
)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?P<last>\S.*)", re.MULTILINE)

_INDEX = "Name your own package index in PIP_INDEX_URL or in pip.conf (`pip config debug` lists the files)"


def sentence_for(output: str, environment: Path) -> str:
    """What went wrong in a run of pip that printed `output`, and the likely repair."""
    if refusals.FULL.search(output):
        return refusals.DISK_FULL
    if _LOGIN.search(output):
        return f"The package index asks for a login. {_INDEX}, with its user and password."
    if match := _OTHER_FILE.search(output):
        return (
            f"The package index gave another file for {match['package']} than the one that requirements.lock "
            "names by hash: a download was cut short, or a proxy or mirror changes files. Run make setup again, or "
            "use another index (PIP_INDEX_URL, pip.conf)."
        )
    missing = _NO_WHEEL.search(output)
    unreached = list(_UNREACHED.finditer(output))
    if unreached and (missing is None or "(from versions: none)" in output):
        best = next((match for match in unreached if match["url"]), unreached[0])
        return (
            f"The package index cannot be reached: {_reason_of(best)}. {_INDEX}; the same file, or HTTPS_PROXY and "
            "PIP_CERT, name a proxy and the certificate authorities to trust."
        )
    if missing:
        return (
            f"The package index has no wheel of {missing['package']} for Python {platform.python_version()} on "
            f"{platform.machine()} with {' '.join(platform.libc_ver()).strip() or 'another C library than glibc'}. "
            "Trainmaster needs x86-64 or ARM64 Linux with glibc 2.28 or newer; if yours is, the index is an incomplete "
            "mirror: set PIP_INDEX_URL or pip.conf."
        )
    return _other_failure(output, environment)


def _other_failure(output: str, environment: Path) -> str:
    if match := _REFUSED.search(output):
        number = int(match["number"])
        return refusals.sentence_for(OSError(number, os.strerror(number), match["path"]), environment)
    return f"pip failed: {_find_error(output)}\nIf it fails so again, run rm -rf .venv, then make setup, which makes it again."


def _find_error(output: str) -> str:
    """The line that says most: a traceback's last one, else pip's first error, else what it printed last."""
    if raised := _TRACEBACK.findall(output):
        return str(raised[-1])
    if errors := re.findall(r"^(?:ERROR: |error: )(.*)", output, re.MULTILINE):
        return str(errors[0])
    lines = output.split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it printed nothing")


def _reason_of(match: "re.Match[str]") -> str:
    """The operating system's or the server's words, without the library's around them."""
    whole = next(filter(None, (match["why"], match["broken"], match["failed"], match["http"])))
    short = _REASON.search(whole)
    place = f"{match['url']}: " if match["url"] else ""
    return place + (short[0] if short else whole[:200])
