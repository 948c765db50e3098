"""The commands of a Dockerfile's RUN line, each with the image that it runs in."""

import itertools
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from trainmaster.local.jobs.images.dockerfile import Copy, Image, Run

_OPTION = re.compile(r"--(mount|network|security)=(\S+)\s+")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_SEPARATORS = frozenset({"&&", "||", ";", "&"})
_REDIRECTIONS = frozenset("<>|")
_ONLY_A_SHELL_KNOWS = "$`()"
_COMMAND_WORK = 30  # units of dockerfile.Work
_PYTHON = re.compile(r"(.*/)?python(3(\.\d+)?)?")
_UV = re.compile(r"(.*/)?uv")


@dataclass(frozen=True, kw_only=True)
class Command:
    """One simple command: its words, and the image with its working directory and what the RUN line mounts."""

    words: tuple[str, ...]
    image: Image

    def __str__(self) -> str:
        return " ".join(word if _REDIRECTIONS.issuperset(word) else shlex.quote(word) for word in self.words)

    @property
    def before_redirection(self) -> tuple[str, ...] | None:
        """The words of the program's own; None where only a shell can tell them."""
        words = self.words
        end = next((at for at, word in enumerate(words) if _REDIRECTIONS.issuperset(word)), len(words))
        end -= end < len(words) and words[end - 1] in {"1", "2"}  # as in 2>/dev/null
        if any(sign in word for word in words[:end] for sign in _ONLY_A_SHELL_KNOWS):
            return None
        return words[:end]

    @property
    def runs_python(self) -> bool:
        return bool(_PYTHON.fullmatch(self.words[0]))

    @property
    def runs_uv(self) -> bool:
        return bool(_UV.fullmatch(self.words[0]))


def commands_of(run: Run) -> Iterator[Command]:
    """The commands that do more than to prepare what there is here in any case."""
    run.before.work.spend(2 * len(run.command))
    options, command = _options(run.command)
    image = replace(run.before, copies=(*run.before.copies, *_bound(options, run.before)))
    here = image.workdir
    for all_words in _split(command):
        inner = all_words[1:] if all_words[:1] == ["("] else all_words
        inner = inner[:-1] if inner[-1:] == [")"] and "(" not in inner else inner
        words = list(itertools.dropwhile(_ASSIGNMENT.fullmatch, inner))
        if words[:1] == ["cd"] and len(words) > 1:
            here = f"{here}/{words[1]}" if not words[1].startswith("/") else words[1]
        elif words:
            run.before.work.spend(_COMMAND_WORK)
            found = Command(words=tuple(words), image=replace(image, workdir=here))
            if not _does_nothing(found):
                yield found


def _options(command: str) -> tuple[list[tuple[str, str]], str]:
    """The RUN line's own options, and what follows them."""
    found: list[tuple[str, str]] = []
    while option := _OPTION.match(command):
        found.append((option[1], option[2]))
        command = command[option.end() :]
    return found, command


def _bound(options: Iterable[tuple[str, str]], image: Image) -> Iterator[Copy]:
    """What the line sees of the source tree by `--mount=type=bind`, as if it were copied.

    Source: https://docs.docker.com/reference/dockerfile/#run---mounttypebind, read 2026-11.
    """
    for name, value in options:
        mount = dict(part.partition("=")[::2] for part in value.split(","))
        target = mount.get("target") or mount.get("dst") or mount.get("destination")
        if name == "mount" and target and mount.get("type", "bind") == "bind" and "from" not in mount:
            source = mount.get("source") or mount.get("src") or "."
            full = posixpath.normpath(posixpath.join(image.workdir, target))
            yield Copy(tree=image.tree, sources=(source,), target=full, into=False)


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


def _does_nothing(command: Command) -> bool:
    """Whether a command only prepares an environment, which is made here in any case, or sets the shell's own options."""
    words: Sequence[str] = command.words
    makes = (
        (command.runs_python and words[1:3] == ("-m", "venv"))
        or (command.runs_uv and words[1:2] == ("venv",))
        or words[0] == "virtualenv"
    )
    activates = words[0] in {".", "source"} and words[1:] and words[1].endswith("/bin/activate")
    return bool(makes or activates or words[0] in {"set", "true", ":"})
