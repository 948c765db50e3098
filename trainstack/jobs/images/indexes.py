"""The package indexes that this machine's user has chosen, in uv's variables: from uv's own settings, else from pip's.

Source: https://pip.pypa.io/en/stable/topics/configuration/ and https://docs.astral.sh/uv/reference/environment/,
read 2026-11.
"""

import configparser
import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

_UVS_OWN = frozenset({
    "UV_CONFIG_FILE", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_URL",
})  # fmt: skip
_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", ""),
}
"""uv's variable for each of pip's settings, and what stands between several values."""
_INDEXES = _UVS_OWN | {"UV_INDEX_STRATEGY", "UV_INSECURE_HOST"}
_SETTINGS = (*_VARIABLES, "no-index")
_PORTS = {"http": 80, "https": 443}
_OF_ANOTHER_ENVIRONMENT = frozenset({
    "CONDA_PREFIX", "PYTHONHOME", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT", "UV_PYTHON", "UV_SYSTEM_PYTHON", "VIRTUAL_ENV",
})  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class UvSettings:
    """The environment that uv runs with, and options of `uv pip install` that no variable stands for."""

    environment: dict[str, str]
    options: tuple[str, ...] = ()

    @property
    def indexes(self) -> dict[str, str]:
        """Of the environment, what says where packages come from."""
        return {name: value for name, value in self.environment.items() if name in _INDEXES}


def settings_of_uv(environ: Mapping[str, str], *, home: Path) -> UvSettings:
    """The user's own environment, with pip's settings in uv's words. Reads pip's configuration files.

    Several indexes are one pool to choose from, as they are to pip, unless the user has said otherwise to uv.
    """
    variables = {name: value for name, value in environ.items() if name not in _OF_ANOTHER_ENVIRONMENT}
    pip = {} if _UVS_OWN.intersection(variables) else _pip_settings(environ, home)
    no_index = pip.pop("no-index", "").lower() not in {"", "0", "false", "no", "off"}
    for setting, value in pip.items():
        variable, between = _VARIABLES[setting]
        variables.setdefault(variable, between.join(value.split()) if between else value.strip())
    environment = {"UV_INDEX_STRATEGY": "unsafe-best-match", **variables, "NO_COLOR": "1"}
    return UvSettings(environment=environment, options=("--no-index",) if no_index else ())


def local_indexes(environ: Mapping[str, str], *, home: Path) -> Iterator[Path]:
    """The folders of this machine among the user's indexes."""
    for word in _words(environ, home):
        path = Path(unquote(urlsplit(word).path)) if word.startswith("file://") else Path(word)
        if path.is_absolute() and path.exists():
            yield path


def index_hosts(environ: Mapping[str, str], *, home: Path) -> set[tuple[str, int]]:
    """The hosts and ports of the user's indexes."""
    hosts = set[tuple[str, int]]()
    for word in _words(environ, home):
        with contextlib.suppress(ValueError):  # not a URL; uv says so
            url = urlsplit(word)
            if url.hostname and (port := url.port or _PORTS.get(url.scheme)):
                hosts.add((url.hostname, port))
    return hosts


def _words(environ: Mapping[str, str], home: Path) -> Iterator[str]:
    for value in settings_of_uv(environ, home=home).indexes.values():
        yield from re.split(r"[\s,]+", value)


def _pip_settings(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Those that are set, a variable before the files, and of these the last."""
    parser = configparser.RawConfigParser(strict=False)
    for path in _pip_files(environ, home):
        with contextlib.suppress(
            OSError, UnicodeDecodeError, configparser.Error
        ):  # pip says what is wrong with it
            parser.read(path, encoding="utf-8")
    sections = [parser[name] for name in ("global", "install") if name in parser]
    settings = {
        setting: text for section in sections for setting, text in section.items() if setting in _SETTINGS
    }
    variables = {setting: environ.get(f"PIP_{setting.replace('-', '_').upper()}") for setting in _SETTINGS}
    return settings | {setting: value for setting, value in variables.items() if value}


def _pip_files(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    yield from (Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"), home / ".pip" / "pip.conf")
    yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
    yield Path(sys.prefix) / "pip.conf"
    if named:
        yield Path(named)
