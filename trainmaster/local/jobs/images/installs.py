"""What a Dockerfile's RUN lines install with pip or uv, in words that uv takes too.

Source: https://pip.pypa.io/en/stable/cli/pip_install/ and https://docs.astral.sh/uv/pip/compatibility/, read 2026-11.
"""

import argparse
import functools
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster.local.jobs.images.dockerfile import Image, Run
from trainmaster.local.jobs.images.layout import Node, find
from trainmaster.local.jobs.images.requirements import lines_of, names_a_path

_RUN_OPTIONS = re.compile(r"(--(mount|network|security)=\S+\s+)*")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_SEPARATORS = frozenset({"&&", "||", ";", "&"})
_REDIRECTIONS = frozenset("<>|")
_ONLY_A_SHELL_KNOWS = "$`()"
_PIP = re.compile(r"(.*/)?pip(3(\.\d+)?)?")
_PYTHON = re.compile(r"(.*/)?python(3(\.\d+)?)?")
_UV = re.compile(r"(.*/)?uv")
_ARCHIVES = (".whl", ".tar.gz", ".zip")
_INSTALLERS_OWN = re.compile(r"(pip|wheel|uv)\s*([=<>~!].*)?")
"""What `pip install --upgrade pip` is for has no use in an environment that uv makes."""

_QUIET = (
    ("-U", "--upgrade"),
    ("-q", "--quiet"),
    ("-v", "--verbose"),
    ("-y", "--yes"),
    ("--no-cache-dir", "--no-cache"),
    ("--user",),
    ("--system",),
    ("--compile", "--no-compile", "--compile-bytecode"),
    ("--disable-pip-version-check",),
    ("--no-input",),
    ("--no-warn-script-location",),
    ("--prefer-binary",),
    ("--force-reinstall", "--ignore-installed", "-I"),
    ("--break-system-packages",),
    ("--use-pep517",),
    ("--no-clean",),
)
"""Options that change nothing in an environment that is new and the image's own."""
_QUIET_VALUES = (
    "--cache-dir", "--default-timeout", "--progress-bar", "--python", "-p", "--retries", "--root-user-action", "--timeout",
)  # fmt: skip
_PASSED_ON = {
    "--pre": "--prerelease=allow",
    "--no-index": "--no-index",
    "--no-deps": "--no-deps",
    "--require-hashes": "--require-hashes",
    "--no-build-isolation": "--no-build-isolation",
}
_PASSED_ON_VALUES = {
    "--index-strategy": "--index-strategy",
    "--only-binary": "--only-binary",
    "--no-binary": "--no-binary",
    "--trusted-host": "--allow-insecure-host",
}


@dataclass(frozen=True, kw_only=True)
class Project:
    """A folder or archive of the image, `extras` as `[a,b]`."""

    node: Node
    extras: str = ""


@dataclass(frozen=True, kw_only=True)
class Install:
    """One `pip install`, its paths on this machine.

    Attributes:
        requirements: what is named on the line itself.
        files: requirement files.
        constraints: constraint files.
        projects: folders and archives of the image.
        links: folders of the image with archives to choose from (`--find-links`).
        options: for `uv pip install`, package indexes excepted.
        default_index: in place of the user's own; empty where none is named.
        indexes: beside the user's own.
        workdir: the directory that it runs in, where a requirement file names something in it.
        named: what a message calls it; empty where it is called by what it installs.
    """

    requirements: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    constraints: tuple[Path, ...] = ()
    projects: tuple[Project, ...] = ()
    links: tuple[Node, ...] = ()
    options: tuple[str, ...] = ()
    default_index: str = ""
    indexes: tuple[str, ...] = ()
    workdir: Node | None = None
    named: str = ""

    @property
    def nodes(self) -> list[Node]:
        """All that it takes from the image beside requirement and constraint files."""
        here = [] if self.workdir is None else [self.workdir]
        return [*(project.node for project in self.projects), *self.links, *here]

    @property
    def is_empty(self) -> bool:
        return not (self.requirements or self.files or self.projects)


def installs_of(image: Image) -> tuple[list[Install], list[str]]:
    """What an image installs, in order, and the RUN lines whose commands are not all done here, as `RUN commands`.

    A command that cannot be understood is one that is not done; so is an install of what no COPY brings.

    Raises:
        ImageError: a requirement file cannot be read, or is too large.
    """
    installs: list[Install] = []
    not_done: list[str] = []
    for run in image.runs:
        left = []
        for words, workdir in _commands(run):
            install = _install(words, replace(run.before, workdir=workdir))
            if install is None:
                left.append(_shown(words))
            elif not install.is_empty:
                installs.append(install)
        if left:
            not_done.append(f"RUN {' && '.join(left)}")
    return installs, not_done


def _commands(run: Run) -> Iterator[tuple[list[str], str]]:
    """The words of each command that does something, and the directory that it runs in."""
    here = run.before.workdir
    for all_words in _split(_RUN_OPTIONS.sub("", run.command, count=1)):
        inner = all_words[1:] if all_words[:1] == ["("] else all_words
        inner = inner[:-1] if inner[-1:] == [")"] and "(" not in inner else inner
        words = list(itertools.dropwhile(_ASSIGNMENT.fullmatch, inner))
        if words[:1] == ["cd"] and len(words) > 1:
            here = f"{here}/{words[1]}" if not words[1].startswith("/") else words[1]
        elif words and not _does_nothing(words):
            yield words, here


def _split(command: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(command.replace("\\\n", " ").replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.commenters, lexer.whitespace_split = "", True
    words: list[str] = []
    try:
        for word in lexer:
            if word in _SEPARATORS:
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # an unclosed quote: as it is written
        words = [command]
    yield words


def _does_nothing(words: Sequence[str]) -> bool:
    """Whether a command only prepares an environment, which is made here in any case, or sets the shell's own options."""
    makes = (
        (_PYTHON.fullmatch(words[0]) and words[1:3] == ["-m", "venv"])
        or (_UV.fullmatch(words[0]) and words[1:2] == ["venv"])
        or words[0] == "virtualenv"
    )
    activates = words[0] in {".", "source"} and words[1:] and words[1].endswith("/bin/activate")
    return bool(makes or activates or words[0] in {"set", "true", ":"})


def _shown(words: Iterable[str]) -> str:
    return " ".join(word if _REDIRECTIONS.issuperset(word) else shlex.quote(word) for word in words)


def _installer(words: Sequence[str]) -> int | None:
    """How many words there are before pip's own arguments; None for any other command."""
    if _PIP.fullmatch(words[0]):
        before = 1
    elif (_PYTHON.fullmatch(words[0]) and list(words[1:3]) == ["-m", "pip"]) or (
        _UV.fullmatch(words[0]) and list(words[1:2]) == ["pip"]
    ):
        before = 3 if words[1] == "-m" else 2
    else:
        return None
    while before < len(words) and words[before].startswith("-"):  # pip's options may stand before its verb
        before += 1
    return before + 1 if words[before : before + 1] == ["install"] else None


def _install(words: Sequence[str], image: Image) -> Install | None:
    """None for an install into another environment, or one that uses what is not understood or not there."""
    before = _installer(words)
    if before is None:
        return None
    end = next((at for at, word in enumerate(words) if _REDIRECTIONS.issuperset(word)), len(words))
    end -= end < len(words) and words[end - 1] in {"1", "2"}  # as in 2>/dev/null
    if any(sign in word for word in words[before:end] for sign in _ONLY_A_SHELL_KNOWS):
        return None
    try:
        asked, unknown = _parser().parse_known_intermixed_args(words[before:end])
    except argparse.ArgumentError:
        return None
    paths = [word for word in asked.packages if _is_path(word)]
    projects = [_project(word, image) for word in [*paths, *asked.editable]]
    files = [find(image, path) for path in asked.requirement]
    constraints = [find(image, path) for path in asked.constraint]
    links = [find(image, path) for path in asked.find_links if "://" not in path]
    urls = [word for url in asked.find_links if "://" in url for word in ("--find-links", url)]
    if unknown or None in (*projects, *files, *constraints, *links):
        return None
    paths_in_files = any(
        names_a_path(line) for path in files if isinstance(path, Path) for line in lines_of(path)
    )
    named = (word for word in asked.packages if not _is_path(word) and not _INSTALLERS_OWN.fullmatch(word))
    return Install(
        requirements=tuple(named),
        files=tuple(path for path in files if isinstance(path, Path)),
        constraints=tuple(path for path in constraints if isinstance(path, Path)),
        projects=tuple(project for project in projects if project),
        links=tuple(node for node in links if node is not None),
        options=(*asked.options, *urls),
        default_index=asked.default_index,
        indexes=tuple(asked.indexes),
        workdir=find(image, ".") if paths_in_files else None,
    )


def _is_path(word: str) -> bool:
    return "://" not in word and ("/" in word or word.startswith(".") or word.endswith(_ARCHIVES))


def _project(word: str, image: Image) -> Project | None:
    path, bracket, extras = word.partition("[")
    node = find(image, path)
    return None if node is None else Project(node=node, extras=bracket + extras)


class _Pass(argparse.Action):
    """Adds an option, with its value where it has one, to `options` under uv's name for it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002  argparse's signature
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002  as above
    ) -> None:
        namespace.options = [*namespace.options, self.const, *([str(values)] if self.nargs is None else [])]


@functools.cache
def _parser() -> argparse.ArgumentParser:
    """Of pip's options, as far as they are done here."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.set_defaults(options=[])
    parser.add_argument("packages", nargs="*")
    for names in (
        ("-r", "--requirement", "--requirements"),
        ("-c", "--constraint", "--constraints"),
        ("-e", "--editable"),
        ("-f", "--find-links"),
    ):
        dest = names[1].removeprefix("--").replace("-", "_")
        parser.add_argument(*names, action="append", default=[], dest=dest)
    for name, here in _PASSED_ON.items():
        parser.add_argument(name, action=_Pass, nargs=0, const=here, dest="options")
    for name, here in _PASSED_ON_VALUES.items():
        parser.add_argument(name, action=_Pass, const=here, dest="options")
    parser.add_argument("-i", "--index-url", "--default-index", default="", dest="default_index")
    parser.add_argument("--extra-index-url", "--index", action="append", default=[], dest="indexes")
    for spellings in _QUIET:
        parser.add_argument(*spellings, action="store_true", dest="nothing")
    for name in _QUIET_VALUES:
        parser.add_argument(name, dest="nothing")
    return parser
