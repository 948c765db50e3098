"""An image as its source tree and Dockerfile describe it: what runs, with which environment, and where.

Instructions that hold: FROM of an earlier stage or of another source tree, ARG, ENV, WORKDIR, COPY and ADD of
local files, ENTRYPOINT, CMD. RUN lines are kept as they are: `installs.py` reads what they install. Source:
https://docs.docker.com/reference/dockerfile/, read 2026-11.
"""

import io
import json
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dockerfile_parse import DockerfileParser
from dockerfile_parse.util import WordSplitter, extract_key_values

from trainstack.process.processes import SYSTEM_PATH

_SHELL = ("/bin/sh", "-c")
_DEFAULT = re.compile(r"\$\{(\w+):([-+])([^}]*)\}")
_REFERRED = re.compile(r"\$\{*(\w+)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_WILDCARDS = frozenset("*?[")
_WITHOUT_EFFECT = frozenset({"EXPOSE", "MAINTAINER"})
_NOT_DONE = frozenset({"HEALTHCHECK", "ONBUILD", "SHELL", "STOPSIGNAL", "USER", "VOLUME"})
_EXAMPLE = (
    "`FROM python:3.11-slim`, `WORKDIR /app`, `COPY . .`, `RUN pip install -r requirements.txt` and "
    '`ENTRYPOINT ["python", "train.py"]`'
)
MAX_BYTES = 64 * 1024
"""Of a Dockerfile."""
MAX_INSTRUCTIONS = 300
MAX_SOURCES = 200
"""Of all COPY lines of an image."""
MAX_CHARACTERS = 10_000
"""Of an instruction, with its variables filled in."""
MAX_BASES = 10
"""Source trees that stand one on the other."""


class ImageError(Exception):
    """A source tree cannot provide an image: its Dockerfile or other files are missing or unreadable."""


@dataclass(frozen=True, kw_only=True)
class Copy:
    """One COPY: paths in the source tree, and where they are in the image (absolute).

    `into` says that the target is a directory because the Dockerfile ends it with a slash.
    """

    tree: Path
    sources: tuple[str, ...]
    target: str
    into: bool


@dataclass(frozen=True, kw_only=True)
class RunLine:
    """One RUN: its command with the image's variables filled in, and the image as it was before it."""

    command: str
    before: "DockerfileImage" = field(compare=False, repr=False)  # which holds the runs before it, and so on


@dataclass(frozen=True, kw_only=True)
class DockerfileImage:
    """What the last stage of a Dockerfile sets.

    Attributes:
        base: the image that its first stage begins with.
        labels: those of LABEL, which may say how the image is made here.
        not_done: instructions that are not executed here, verbatim.
    """

    tree: Path
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    args: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    copies: tuple[Copy, ...] = ()
    base: str = ""
    runs: tuple[RunLine, ...] = ()
    not_done: tuple[str, ...] = ()

    def argv(self, *, command: Sequence[str], args: Sequence[str]) -> list[str]:
        """What a container of this image runs: `command` replaces ENTRYPOINT and CMD, `args` replaces CMD.

        Source: https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/
        """
        if command:
            return [*command, *args]
        return [*self.entrypoint, *(args or self.command)]


def repository_of(image_uri: str) -> str:
    """The image URI without its tag and digest."""
    name = image_uri.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return head + slash + last.partition(":")[0]


def read_image(tree: Path, bases: Mapping[str, Path] | None = None) -> DockerfileImage:
    """The image that `tree/Dockerfile` describes. `bases` are source trees of images that a FROM may name, by repository.

    Raises:
        ImageError: there is no Dockerfile or it is too large, an instruction in it cannot be parsed, or a COPY names a
            missing path.
    """
    image = _read(tree, bases or {}, depth=1)
    faults = [
        f"COPY {source}: there is no such file or directory in {str(copy.tree)!r}"
        for copy in image.copies
        for source in copy.sources
        # As with BuildKit, a pattern may match nothing.
        if not _WILDCARDS.intersection(source) and not inside(copy.tree, source).exists()
    ]
    if faults:
        raise ImageError(f"{tree / 'Dockerfile'}: " + "; ".join(dict.fromkeys(faults)))
    return image


def inside(tree: Path, source: str) -> Path:
    """The path of a COPY's source. Nothing above the tree can be copied."""
    return tree / posixpath.normpath("/" + source).lstrip("/")


def _read(tree: Path, bases: Mapping[str, Path], *, depth: int) -> DockerfileImage:
    path = tree / "Dockerfile"
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        example = (
            f"; write one, for example with the lines {_EXAMPLE}"
            if isinstance(error, FileNotFoundError)
            else ""
        )
        raise ImageError(f"no Dockerfile can be read at {str(path)!r}: {error.strerror}{example}") from error
    if len(raw) > MAX_BYTES:
        raise ImageError(f"{path} has more than {MAX_BYTES} bytes")
    try:
        structure = DockerfileParser(fileobj=io.BytesIO(raw)).structure
    except ValueError as error:
        raise ImageError(f"{path} cannot be read: {error}") from error
    instructions = [
        (parsed["instruction"], parsed["value"]) for parsed in structure if parsed["instruction"] != "COMMENT"
    ]
    if len(instructions) > MAX_INSTRUCTIONS:
        raise ImageError(f"{path} has more than {MAX_INSTRUCTIONS} instructions")
    stages: dict[str, DockerfileImage] = {}
    globals_ = DockerfileImage(tree=tree)
    image = globals_
    for instruction, value in instructions:
        try:
            if instruction == "FROM":
                base, name = _from(_plain(value, globals_))
                image = stages.get(base) or _base(tree, base, bases, depth=depth)
                image = replace(image, tree=tree, args=globals_.args)
                stages[name] = image
            else:
                image = _image_after(image, instruction, value, defaults=globals_)
            if stages:
                stages[list(stages)[-1]] = image
            else:
                globals_ = image
        except (ValueError, IndexError) as error:
            raise ImageError(f"{path}: {instruction} {value!r:.300} cannot be understood: {error}") from error
    if not stages:
        raise ImageError(f"{path} has no FROM")
    return image


def _base(tree: Path, base: str, bases: Mapping[str, Path], *, depth: int) -> DockerfileImage:
    provided = bases.get(repository_of(base))
    if provided is None or provided == tree:  # a tree may stand for its own base's next version
        return DockerfileImage(tree=tree, base=base, env={"PATH": SYSTEM_PATH})
    if depth == MAX_BASES:
        raise ValueError(f"more than {MAX_BASES} source trees stand one on the other")
    return _read(provided, bases, depth=depth + 1)


def _from(words: str) -> tuple[str, str]:
    """The base and the name of a stage; an unnamed stage goes by its base."""
    parts = [word for word in words.split() if not word.startswith("--")]
    named = len(parts) == 3 and parts[1].lower() == "as"  # noqa: PLR2004  `base AS name`
    return parts[0], parts[2] if named else f"unnamed stage of {parts[0]}"


def _image_after(
    image: DockerfileImage,
    instruction: str,
    value: str,
    *,
    defaults: DockerfileImage,
) -> DockerfileImage:
    match instruction:
        case "ARG":
            image = replace(image, args={**image.args, **_arguments(value, image, defaults)})
        case "ENV":
            image = replace(image, env={**image.env, **_pairs(value, image)})
        case "LABEL":
            image = replace(image, labels={**image.labels, **_pairs(value, image)})
        case "WORKDIR":
            path = posixpath.join(image.workdir, _plain(value, image))
            image = replace(image, workdir=posixpath.normpath(path))
        case "RUN":
            image = replace(image, runs=(*image.runs, RunLine(command=_command(value, image), before=image)))
        case "COPY" | "ADD":
            image = _with_copy(image, f"{instruction} {value}", _copy_words(value, image))
        case "ENTRYPOINT":
            image = replace(image, entrypoint=_words(value))
        case "CMD":
            image = replace(image, command=_words(value))
        case _ if instruction in _NOT_DONE:
            image = replace(image, not_done=(*image.not_done, f"{instruction} {value}"))
        case _ if instruction not in _WITHOUT_EFFECT:
            raise ValueError("there is no such instruction")
    return image


def _arguments(value: str, image: DockerfileImage, defaults: DockerfileImage) -> dict[str, str]:
    arguments: dict[str, str] = {}
    for word in WordSplitter(value).split(dequote=False):
        name, equals, _ = word.partition("=")
        # An ARG without a value, inside a stage, takes the one that stands before the first FROM.
        arguments |= _pairs(word, image) if equals else {name: defaults.args.get(name, "")}
    return arguments


def _pairs(value: str, image: DockerfileImage) -> dict[str, str]:
    pairs = extract_key_values(True, image.args, image.env, _with_defaults(value, image))
    return {str(name): str(text) for name, text in pairs}


def _plain(value: str, image: DockerfileImage) -> str:
    return str(WordSplitter(_with_defaults(value, image), args=image.args, envs=image.env).dequote())


def _with_defaults(value: str, image: DockerfileImage) -> str:
    """`${NAME:-word}` and `${NAME:+word}` resolved: the parser knows `$NAME` and `${NAME}` only."""
    _refuse_growth(value, image)

    def resolved(match: re.Match[str]) -> str:
        name, sign, word = match.groups()
        known = image.env.get(name) or image.args.get(name)
        return (known or word) if sign == "-" else (word if known else "")

    end = value.rfind("}") + 1  # an expression that looked for one beyond would do so from every `${`
    resolved_value = _DEFAULT.sub(resolved, value[:end]) + value[end:]
    _refuse_growth(resolved_value, image)
    return resolved_value


def _refuse_growth(value: str, image: DockerfileImage) -> None:
    """Raises `ValueError` before variables make a text of too many characters."""
    known = (image.env.get(name) or image.args.get(name, "") for name in _REFERRED.findall(value))
    if len(value) + sum(map(len, known)) > MAX_CHARACTERS:
        raise ValueError(f"it has more than {MAX_CHARACTERS} characters with its variables filled in")


def _copy_words(value: str, image: DockerfileImage) -> list[str]:
    return _list(value) or list(
        WordSplitter(_with_defaults(value, image), args=image.args, envs=image.env).split()
    )


def _with_copy(image: DockerfileImage, line: str, words: Sequence[str]) -> DockerfileImage:
    *sources, target = [word for word in words if not word.startswith("--")]
    if len(sources) + sum(len(copy.sources) for copy in image.copies) > MAX_SOURCES:
        raise ValueError(f"the COPY lines of an image may have at most {MAX_SOURCES} sources")
    is_from_stage = any(word.startswith("--from=") for word in words)
    local = () if is_from_stage else tuple(source for source in sources if "://" not in source)
    if len(local) < len(sources):
        image = replace(image, not_done=(*image.not_done, line))
    if not local:
        return image
    full = posixpath.normpath(posixpath.join(image.workdir, target))
    into = target.endswith(("/", "/.")) or target == "."
    copy = Copy(tree=image.tree, sources=local, target=full, into=into)
    return replace(image, copies=(*image.copies, copy))


def _command(value: str, image: DockerfileImage) -> str:
    """The command as a shell takes it, the image's variables filled in; others stay."""
    if value.startswith("<<"):
        raise ValueError("here-documents are not read here; write the commands as `RUN a && b`")
    listed = _list(value)
    if listed is not None:
        return shlex.join(listed)
    known = {**image.args, **image.env}
    return _VARIABLE.sub(
        lambda match: known.get(match[1] or match[2], match[0]), _with_defaults(value, image)
    )


def _words(value: str) -> tuple[str, ...]:
    """The exec form as it is; the shell form as the shell's one argument."""
    listed = _list(value)
    return tuple(listed) if listed is not None else (*_SHELL, value)


def _list(value: str) -> list[str] | None:
    try:
        words = json.loads(value)
    except ValueError:
        return None
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else None
