"""The program's environment, from a source tree's Dockerfile."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dockerfile_parse import DockerfileParser


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
        entrypoint=_words(last.get("ENTRYPOINT", "")),
        cmd=_words(last.get("CMD", "")),
        dockerfile=text,
    )


def _words(text: str) -> tuple[str, ...]:
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if isinstance(words, list):
        return tuple(map(str, words))
    return ("/bin/sh", "-c", text) if text else ()
