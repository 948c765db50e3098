"""The start of the program in its job: what an image and a request say of it, and what the checks examine.

Source: ContainerSpec of https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec
"""

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from dockerfile_parse import DockerfileParser

from trainmaster.inspect.finding import ProgramFinding, SourceLocation
from trainmaster.inspect.program import ProgramSource
from trainmaster.inspect.request import ProgramRequest
from trainmaster.orchestrator.core.requests.placeholders import text_with_values

ARGUMENT = re.compile(r"\$\{?[@*#\d]")
SHELLS = {"sh", "bash", "dash", "ash", "zsh"}
Check = Iterator[ProgramFinding]


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """`variables` are set for every process of the image. ENTRYPOINT and CMD are those of its last stage.

    A request's `command` replaces the ENTRYPOINT and the CMD, its `args` the CMD alone. Of the shell form, `python
    train.py`, they are the words that Docker makes of it: `/bin/sh -c` and the text.
    Source: https://docs.docker.com/reference/dockerfile/#shell-form-entrypoint-example
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    dockerfile: str = ""


def surroundings_of(root: Path) -> Surroundings:
    """What the Dockerfile at the root of a tree says; nothing is guessed beyond."""
    file = root / "Dockerfile"
    text = file.read_text(errors="replace") if file.is_file() else ""
    parsed = DockerfileParser(fileobj=io.BytesIO(text.encode()))
    last: dict[str, str] = {}
    for line in parsed.structure:
        if line["instruction"] == "FROM":  # a new stage
            last.clear()
        last[line["instruction"]] = line["value"]
    return Surroundings(
        variables=parsed.envs,
        entrypoint=_words_of(last.get("ENTRYPOINT", "")),
        cmd=_words_of(last.get("CMD", "")),
        dockerfile=text,
    )


def _words_of(text: str) -> tuple[str, ...]:
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if isinstance(words, list):
        return tuple(map(str, words))
    return ("/bin/sh", "-c", text) if text else ()


@dataclass(frozen=True, kw_only=True)
class ProgramStart:
    """`words` start the program, and `given` are the arguments that the request, or the image without one, appends.

    `place` is where it is written. `replaced_cmd` is the image's CMD if arguments take its place, and nothing before
    them starts a program.
    """

    words: tuple[str, ...]
    given: tuple[str, ...]
    place: SourceLocation
    replaced_cmd: tuple[str, ...] = ()

    @property
    def shell_text(self) -> str | None:
        """What a shell runs; None if another program is started."""
        return shell_text_of(self.words)

    @property
    def drops_arguments(self) -> bool:
        """Whether a shell runs a text that names no argument, such as "$@": then none reaches the program."""
        return self.shell_text is not None and not ARGUMENT.search(self.shell_text)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The program's own arguments, without its interpreter's or launcher's."""
        if not self.words or (self.shell_text is not None and not self.drops_arguments):
            return self.given
        names, arguments = split_start((*self.words, *self.given))
        return tuple(arguments) if names or self.drops_arguments else self.given


def start_of(request: ProgramRequest | None, surroundings: Surroundings) -> ProgramStart:
    """How the job starts the program; without a request, how the image does."""
    entrypoint, cmd = surroundings.entrypoint, surroundings.cmd
    args = () if request is None else request.program.args
    given = tuple(text_with_values(word, run_id="smoke-run", trial="1") for word in args)
    here = SourceLocation(
        path=request.path if request is not None and (given or request.command) else "Dockerfile"
    )
    if request is not None and request.command:
        return ProgramStart(words=request.command, given=given, place=here)
    if entrypoint:
        return ProgramStart(words=entrypoint, given=given or cmd, place=here)
    if request is not None and (given or request.parameters):
        return ProgramStart(words=(), given=given, place=here, replaced_cmd=cmd)
    return ProgramStart(words=cmd, given=(), place=here)


def split_start(words: Sequence[str]) -> tuple[list[str], Sequence[str]]:
    """The names that the started module may have in a tree, the longest first, and the program's own arguments.

    Of `python /app/trainer/task.py --epochs=1`, they are `app.trainer.task`, `trainer.task` and `task`. None where no
    Python program is seen. Of a launcher, `python -m trainer.launch … -- python train.py`, it is the one behind the
    dashes.
    """
    if (text := shell_text_of(words)) is not None:
        return split_start(text.split())
    if "--" in words and (launched := split_start(words[list(words).index("--") + 1 :]))[0]:
        return launched
    for number, word in enumerate(words):
        if word == "-m" and words[number + 1 :]:
            return [words[number + 1]], words[number + 2 :]
        if word.endswith(".py") and not word.startswith("-"):
            parts = [part for part in PurePosixPath(word).with_suffix("").parts if part not in {"/", "."}]
            return [".".join(parts[start:]) for start in range(len(parts))], words[number + 1 :]
    return [], ()


def shell_text_of(words: Sequence[str]) -> str | None:
    """The text of `bash -c TEXT`; None of another command."""
    if not words or PurePosixPath(words[0]).name not in SHELLS:
        return None
    option = next((number for number, word in enumerate(words) if word[:1] == "-" and word[-1:] == "c"), None)
    return None if option is None or option + 1 == len(words) else words[option + 1]


@dataclass(frozen=True, kw_only=True, eq=False)
class Examined:
    """`request` is None if none was given; the number of replicas is then unknown."""

    source: ProgramSource
    surroundings: Surroundings
    request: ProgramRequest | None = None

    @cached_property
    def start(self) -> ProgramStart:
        return start_of(self.request, self.surroundings)
