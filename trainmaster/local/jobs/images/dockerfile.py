"""An image as its source tree and Dockerfile describe it: what runs, with which environment, and where.

Instructions that hold: FROM of an earlier stage, ARG, ENV, WORKDIR, COPY and ADD of local files, ENTRYPOINT, CMD.
RUN, the base image and `COPY --from` do not: the stack's own interpreter and packages stand for them.
Source: https://docs.docker.com/reference/dockerfile/, read 2026-11.
"""

import io
import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dockerfile_parse import DockerfileParser
from dockerfile_parse.util import WordSplitter, extract_key_values

_SHELL = ("/bin/sh", "-c")
_DEFAULT = re.compile(r"\$\{(\w+):([-+])([^}]*)\}")


class ImageError(Exception):
    """A source tree that cannot stand for an image: no Dockerfile, or one that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Copy:
    """One COPY: paths in the source tree, and where they are in the image (absolute).

    `into` says that the target is a directory because the Dockerfile ends it with a slash.
    """

    sources: tuple[str, ...]
    target: str
    into: bool


@dataclass(frozen=True, kw_only=True)
class Image:
    """What the last stage of a Dockerfile sets."""

    tree: Path
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    args: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    copies: tuple[Copy, ...] = ()

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


def read_image(tree: Path) -> Image:
    """The image that `tree/Dockerfile` describes.

    Raises:
        ImageError: there is no Dockerfile, or an instruction in it cannot be understood.
    """
    path = tree / "Dockerfile"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ImageError(f"no Dockerfile can be read at {str(path)!r}: {error.strerror}") from error
    stages: dict[str, Image] = {}
    globals_ = Image(tree=tree)
    image = globals_
    for instruction, value in _instructions(text):
        try:
            if instruction == "FROM":
                base, name = _from(_plain(value, globals_))
                image = replace(stages.get(base, Image(tree=tree)), args=globals_.args)
                stages[name] = image
            else:
                image = _applied(image, instruction, value, globals_)
            if stages:
                stages[list(stages)[-1]] = image
            else:
                globals_ = image
        except (ValueError, IndexError) as error:
            raise ImageError(f"{path}: {instruction} {value!r} cannot be understood: {error}") from error
    if not stages:
        raise ImageError(f"{path} has no FROM")
    return image


def _instructions(text: str) -> Iterable[tuple[str, str]]:
    parser = DockerfileParser(fileobj=io.BytesIO(text.encode()))
    for found in parser.structure:
        if found["instruction"] != "COMMENT":
            yield found["instruction"], found["value"]


def _from(words: str) -> tuple[str, str]:
    """The base and the name of a stage; an unnamed stage goes by its base."""
    parts = [word for word in words.split() if not word.startswith("--")]
    named = len(parts) == 3 and parts[1].lower() == "as"  # noqa: PLR2004  `base AS name`
    return parts[0], parts[2] if named else f"unnamed stage of {parts[0]}"


def _applied(image: Image, instruction: str, value: str, defaults: Image) -> Image:
    match instruction:
        case "ARG":
            image = replace(image, args={**image.args, **_arguments(value, image, defaults)})
        case "ENV":
            image = replace(image, env={**image.env, **_pairs(value, image)})
        case "WORKDIR":
            path = posixpath.join(image.workdir, _plain(value, image))
            image = replace(image, workdir=posixpath.normpath(path))
        case "COPY" | "ADD":
            image = replace(image, copies=(*image.copies, *_copy(value, image)))
        case "ENTRYPOINT":
            image = replace(image, entrypoint=_words(value))
        case "CMD":
            image = replace(image, command=_words(value))
    return image


def _arguments(value: str, image: Image, defaults: Image) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in WordSplitter(value).split(dequote=False):
        name, equals, _ = word.partition("=")
        # An ARG without a value, inside a stage, takes the one that stands before the first FROM.
        found |= _pairs(word, image) if equals else {name: defaults.args.get(name, "")}
    return found


def _pairs(value: str, image: Image) -> dict[str, str]:
    pairs = extract_key_values(True, image.args, image.env, _defaulted(value, image))
    return {str(name): str(text) for name, text in pairs}


def _plain(value: str, image: Image) -> str:
    return str(WordSplitter(_defaulted(value, image), args=image.args, envs=image.env).dequote())


def _defaulted(value: str, image: Image) -> str:
    """`${NAME:-word}` and `${NAME:+word}` resolved: the parser knows `$NAME` and `${NAME}` only."""

    def resolved(match: re.Match[str]) -> str:
        name, sign, word = match.groups()
        known = image.env.get(name) or image.args.get(name)
        return (known or word) if sign == "-" else (word if known else "")

    return _DEFAULT.sub(resolved, value)


def _copy(value: str, image: Image) -> list[Copy]:
    exec_form = _list(value)
    words = exec_form or list(WordSplitter(_defaulted(value, image), args=image.args, envs=image.env).split())
    if any(word.startswith("--from") for word in words):
        return []
    *sources, target = [word for word in words if not word.startswith("--")]
    local = tuple(source for source in sources if "://" not in source)
    if not local:
        return []
    full = posixpath.normpath(posixpath.join(image.workdir, target))
    return [Copy(sources=local, target=full, into=target.endswith(("/", "/.")) or target == ".")]


def _words(value: str) -> tuple[str, ...]:
    """The exec form as it is; the shell form as the shell's one argument."""
    listed = _list(value)
    return tuple(listed) if listed is not None else (*_SHELL, value)


def _list(value: str) -> list[str] | None:
    try:
        found = json.loads(value)
    except ValueError:
        return None
    return found if isinstance(found, list) and all(isinstance(word, str) for word in found) else None
