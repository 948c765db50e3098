"""Packages that the RUN lines of a Dockerfile install with `pip install` or `uv pip install`, in words that uv takes.

Commands are read as far as `&&` and `;` join them; whatever else a RUN line does is not done here.
Sources: https://pip.pypa.io/en/stable/cli/pip_install/, https://docs.astral.sh/uv/pip/compatibility/ and
https://pip.pypa.io/en/stable/reference/requirements-file-format/, read 2026-11.
"""

import argparse
import functools
import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainstack.jobs.images.dockerfile import DockerfileImage, ImageError, RunLine
from trainstack.jobs.images.layout import Node, find, layout

MAX_FILE_BYTES = 1024 * 1024
"""Of a requirement file, and of all those that it names, and so on."""
MAX_FILES = 50

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_OPTIONS = re.compile(r"\A(--(mount|network|security)=\S+\s+)+")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_SEPARATORS = frozenset({"&&", ";"})
_SIGNS = frozenset("()<>|&")
_ONLY_A_SHELL_KNOWS = re.compile(r".*[$`].*|[()<>|&]+", re.DOTALL)
_PREPARES = re.compile(
    r"(\S*/)?python[\d.]* -m venv\b.*|(\S*/)?uv venv\b.*|virtualenv .*|(\.|source) \S+/bin/activate|set -.*|true|:"
)
"""What there is here in any case: an environment of the image's own."""
_PIP = re.compile(r"((\S*/)?pip[\d.]*|(\S*/)?python[\d.]* -m pip|(\S*/)?uv pip)( -\S+)* install( |$)")
_INSTALLERS_OWN = re.compile(r"(pip|wheel|uv)\s*([=<>~!].*)?")
"""What `pip install --upgrade pip` is for has no use in an environment that uv makes."""
_ARCHIVES = (".whl", ".tar.gz", ".zip")
_NESTED = re.compile(r"(?:-r|-c|--requirement|--constraint)[= ]?\s*(\S+)")
_PATH = re.compile(r"(-e|--editable|-f|--find-links)\b.*|\.{0,2}/.*|[^\s:]+\.(whl|tar\.gz|zip)\b.*")

_QUIET = (
    "-q", "--quiet", "-v", "--verbose", "-y", "--yes", "-n", "--no-cache", "--no-cache-dir", "--compile", "--no-compile",
    "--compile-bytecode", "--no-progress", "-U", "--upgrade", "--user", "--system", "--disable-pip-version-check", "--no-input",
    "--no-warn-script-location", "--prefer-binary", "--force-reinstall", "-I", "--ignore-installed", "--reinstall",
    "--break-system-packages", "--use-pep517", "--no-clean",
)  # fmt: skip
_QUIET_VALUES = (
    "--cache-dir", "--link-mode", "--progress-bar", "-p", "--python", "--default-timeout", "--retries", "--root-user-action",
    "--timeout",
)  # fmt: skip
"""Options that change nothing in an environment that is new and the image's own."""
_PASSED_ON = ("--pre", "--no-index", "--no-deps", "--require-hashes", "--no-build-isolation")
_PASSED_ON_VALUES = ("--index-strategy", "--only-binary", "--no-binary", "--trusted-host")


@dataclass(frozen=True, kw_only=True)
class Install:
    """One `pip install`.

    Attributes:
        line: what messages call it, without passwords.
        words: requirements and options for `uv pip install`; paths are relative to the working directory.
        files: requirement files, as paths of this machine.
        constraints: likewise, constraint files.
        content: the lines of these files and of those that they name.
        default_index: in place of the user's own; empty where none is named.
        indexes: beside the user's own.
        tree: the image's files, where something in them is installed.
        workdir: in `tree`.
        is_of_script: whether it is what a script's requirements.txt asks for, and not the image's.
    """

    line: str
    words: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    constraints: tuple[Path, ...] = ()
    content: tuple[str, ...] = ()
    default_index: str = ""
    indexes: tuple[str, ...] = ()
    tree: Node | None = None
    workdir: str = "/"
    is_of_script: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """For `uv pip install`; indexes are left out because their URLs may hold passwords."""
        files = (f"--requirement={path}" for path in self.files)
        return (*self.words, *files, *(f"--constraint={path}" for path in self.constraints))


def installs_of(image: DockerfileImage) -> tuple[list[Install], list[str]]:
    """What an image installs, in order, and the RUN lines whose commands are not all done here, as `RUN commands`.

    A command that cannot be understood is one that is not done; so is an install of what no COPY brings.

    Raises:
        ImageError: a requirement file cannot be read or is too large.
    """
    installs: list[Install] = []
    not_done: list[str] = []
    for run in image.runs:
        left: list[str] = []
        is_elsewhere = False
        for words in _commands_of(run):
            is_elsewhere |= words[0] == "cd"
            install = None if is_elsewhere else _install_from(words, run.before)
            if install is None:
                left.append(
                    " ".join(word if _SIGNS.issuperset(word) else shlex.quote(word) for word in words)
                )
            elif install.words or install.files:
                installs.append(install)
        if left:
            not_done.append(f"RUN {' && '.join(left)}")
    return installs, not_done


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a requirement file and of those that it names, without comments.

    Raises:
        ImageError: a file cannot be read, or they are too large or too many.
    """
    waiting, named_files, left = [path], {path}, MAX_FILE_BYTES
    while waiting:
        here = waiting.pop()
        try:
            with here.open("rb") as file:
                raw = file.read(left + 1)
        except OSError as error:
            raise ImageError(f"{here} cannot be read: {error.strerror}") from error
        left -= len(raw)
        if left < 0:
            raise ImageError(f"{path} and the files that it names have more than {MAX_FILE_BYTES} bytes")
        for unbroken in raw.decode("utf-8", "replace").replace("\\\n", " ").splitlines():
            line = re.sub(r"(^|\s)#.*", "", unbroken).strip()
            if line:
                yield line
            if named := _NESTED.fullmatch(line):
                other = (here.parent / named[1]).resolve()
                if other not in named_files and other.is_file():
                    named_files.add(other)
                    waiting.append(other)
        if len(named_files) > MAX_FILES:
            raise ImageError(f"{path} and the files that it names are more than {MAX_FILES}")


def names_a_path(line: str) -> bool:
    """Whether a line of a requirement file means something beside it: a folder or an archive."""
    return bool(_PATH.fullmatch(line)) and "://" not in line


def _commands_of(run: RunLine) -> Iterator[list[str]]:
    """The words of each command that does more than to prepare what there is here in any case."""
    command = _OPTIONS.sub("", run.command)
    lexer = shlex.shlex(command.replace("\\\n", " ").replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.commenters, lexer.whitespace_split = "", True
    try:
        tokens = list(lexer)
    except ValueError:  # an unclosed quote: as it is written
        tokens = [command]
    for is_separator, group in itertools.groupby(tokens, _SEPARATORS.__contains__):
        words = list(itertools.dropwhile(_ASSIGNMENT.fullmatch, group))
        if is_separator or not words:
            continue
        if not _PREPARES.fullmatch(" ".join(words)):
            yield words


def _install_from(words: Sequence[str], image: DockerfileImage) -> Install | None:
    """None for another command, an install into another environment, or one that uses what is not understood or not there."""
    text = " ".join(words)
    command = _PIP.match(text)
    if command is None or any(map(_ONLY_A_SHELL_KNOWS.fullmatch, words)):
        return None
    try:
        asked, unknown = _parser().parse_known_intermixed_args(words[len(command[0].split()) :])
    except argparse.ArgumentError:
        return None
    names = [word for word in asked.packages if not _is_path(word) and not _INSTALLERS_OWN.fullmatch(word)]
    paths = [*filter(_is_path, asked.packages), *asked.editable]
    links = [link for link in asked.links if "://" not in link]
    files = [_file(path, image) for path in asked.files]
    constraints = [_file(path, image) for path in asked.constraints]
    nodes = [find(image, path.partition("[")[0]) for path in (*paths, *links)]
    if unknown or None in (*files, *constraints, *nodes):
        return None
    content = [line for path in (*files, *constraints) if path for line in lines_of(path)]
    uses_tree = paths or links or any(map(names_a_path, content))
    links = [_relative(link, image) if link in links else link for link in asked.links]
    return Install(
        line=_CREDENTIALS.sub("***@", text),
        words=(
            *asked.options,
            *(f"--find-links={link}" for link in links),
            *names,
            *(_relative(path, image) for path in paths),
        ),
        files=tuple(filter(None, files)),
        constraints=tuple(filter(None, constraints)),
        content=tuple(content),
        default_index=asked.default_index,
        indexes=tuple(asked.indexes),
        tree=layout(image) if uses_tree else None,
        workdir=image.workdir,
    )


def _is_path(word: str) -> bool:
    return "://" not in word and ("/" in word or word.startswith(".") or word.endswith(_ARCHIVES))


def _file(path: str, image: DockerfileImage) -> Path | None:
    node = find(image, path)
    return node if isinstance(node, Path) and node.is_file() else None


def _relative(path: str, image: DockerfileImage) -> str:
    return "./" + posixpath.relpath(posixpath.join(image.workdir, path), image.workdir)


@functools.cache
def _parser() -> argparse.ArgumentParser:
    """Of pip's options, as far as they are done here."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("packages", nargs="*")
    parser.add_argument(*_QUIET, action="store_true", dest="nothing")
    parser.add_argument(*_QUIET_VALUES, dest="nothing")
    for name in _PASSED_ON:
        parser.add_argument(name, action="append_const", const=name, dest="options", default=[])
    for name in _PASSED_ON_VALUES:
        in_one_word = functools.partial("{}={}".format, name)
        parser.add_argument(name, action="append", type=in_one_word, dest="options", default=[])
    parser.add_argument("-i", "--index-url", "--default-index", default="", dest="default_index")
    for dest, names in {
        "indexes": ("--extra-index-url", "--index"),
        "files": ("-r", "--requirement", "--requirements"),
        "constraints": ("-c", "--constraint", "--constraints"),
        "editable": ("-e", "--editable"),
        "links": ("-f", "--find-links"),
    }.items():
        parser.add_argument(*names, action="append", default=[], dest=dest)
    return parser
