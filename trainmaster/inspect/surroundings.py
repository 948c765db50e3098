"""The program's environment, from a source tree's Dockerfile and requirements."""

import io
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dockerfile_parse import DockerfileParser

PREBUILT = re.compile(r"/(?:training|prediction)/tf2?-(?:cpu|gpu|tpu)\.(\d+)-(\d+)|/tf2-(?:cpu|gpu)\.(\d+)-(\d+)|tensorflow/tensorflow:(\d+)\.(\d+)")  # fmt: skip
PINNED = re.compile(r"^tensorflow(?:-cpu|\[[\w,-]+\])?\s*(?:==|~=)\s*(\d+)\.(\d+)", re.MULTILINE)
KERAS_3_SINCE = (2, 16)  # https://keras.io/getting_started: TensorFlow 2.16 is the first that brings Keras 3


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """`variables` are set for every process of the image; `tensorflow` is major and minor, None where not said.

    A request's `command` replaces the ENTRYPOINT and the CMD, its `args` the CMD alone.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    tensorflow: tuple[int, int] | None = None
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    dockerfile: str = ""
    requirements: str | None = None
    """The text of requirements.txt; None without one."""

    @property
    def command(self) -> tuple[str, ...]:
        """What the image starts by itself."""
        return (*self.entrypoint, *self.cmd)

    @property
    def has_keras_2(self) -> bool:
        return self.tensorflow is not None and self.tensorflow < KERAS_3_SINCE


def surroundings_of(root: Path) -> Surroundings:
    """What the Dockerfile and the requirements at the root of a tree say; nothing is guessed beyond."""
    dockerfile = _text(root / "Dockerfile")
    parsed = DockerfileParser(fileobj=io.BytesIO(dockerfile.encode()))
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    version = None
    for each in parsed.structure:
        match each["instruction"]:
            case "FROM":  # a new stage
                entrypoint, cmd, version = (), (), tensorflow_of(each["value"])
            case "ENTRYPOINT":
                entrypoint = _words(each["value"])
            case "CMD":
                cmd = _words(each["value"])
    requirements = "\n".join(_text(path) for path in sorted(root.glob("requirements*.txt")))
    if (pinned := PINNED.search(requirements)) is not None:
        version = (int(pinned[1]), int(pinned[2]))
    return Surroundings(
        variables=parsed.envs,
        tensorflow=version,
        entrypoint=entrypoint,
        cmd=cmd,
        dockerfile=dockerfile,
        requirements=_text(own) if (own := root / "requirements.txt").is_file() else None,
    )


def tensorflow_of(image: str) -> tuple[int, int] | None:
    """The TensorFlow version that an image's own name states."""
    if (found := PREBUILT.search(image)) is None:
        return None
    major, minor = (number for number in found.groups() if number is not None)
    return int(major), int(minor)


def _words(rest: str) -> tuple[str, ...]:
    """The words of `["python", "-m", "trainer.task"]`, or of the same written for a shell."""
    try:
        found = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
    except ValueError:
        return ()
    return tuple(map(str, found))


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""
