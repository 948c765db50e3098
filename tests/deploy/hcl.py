"""Terraform's configuration, read with python-hcl2, with blocks distinguished from maps.

`terraform validate` would need the provider, which is not available everywhere.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hcl2

TERRAFORM = Path(__file__).resolve().parents[2] / "trainmaster" / "deploy" / "terraform"
_MARKS = frozenset({"__is_block__", "__comments__", "__inline_comments__"})


@dataclass(frozen=True, kw_only=True)
class Block:
    """A resource or data source: `body` without what only Terraform itself reads."""

    kind: str
    type: str
    name: str
    file: str
    body: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.file}: {self.type}.{self.name}"


@cache
def loaded(folder: Path = TERRAFORM) -> dict[str, dict[str, Any]]:
    """Every file of one folder, by its name."""
    return {path.name: hcl2.loads(path.read_text()) for path in sorted(folder.glob("*.tf"))}


@cache
def blocks() -> tuple[Block, ...]:
    """Every resource and data source of the root module."""
    return tuple(
        Block(kind=kind, type=bare(type_), name=bare(name), file=file, body=body)
        for file, content in loaded().items()
        for kind in ("resource", "data")
        for each in content.get(kind, [])
        for type_, named in each.items()
        if type_ not in _MARKS
        for name, body in named.items()
    )


@cache
def dependencies() -> dict[str, frozenset[str]]:
    """What each resource, data source and local of the root module waits for, itself or through others, by address."""
    bodies = {
        f"{'data.' if each.kind == 'data' else ''}{each.type}.{each.name}": str(each.body)
        for each in blocks()
    }
    for content in loaded().values():
        for each in content.get("locals", []):
            bodies |= {f"local.{name}": str(value) for name, value in each.items()}
    named = {
        one: frozenset(other for other in bodies if re.search(rf"(?<![\w.]){re.escape(other)}\b", body))
        for one, body in bodies.items()
    }
    for _ in named:  # as many rounds as a chain could be long
        named = {one: direct.union(*(named[other] for other in direct)) for one, direct in named.items()}
    return named


def block(type_: str, name: str) -> Mapping[str, Any]:
    """The body of one resource.

    Raises:
        LookupError: the configuration has no such resource.
    """
    for each in blocks():
        if (each.kind, each.type, each.name) == ("resource", type_, name):
            return each.body
    raise LookupError(f"{type_}.{name}")


def bare(text: str) -> str:
    """A label or a text without its quotes."""
    return text.strip('"')


def arguments(body: Mapping[str, Any]) -> Iterator[tuple[str, list[Mapping[str, Any]] | None]]:
    """Each argument's name, with the bodies of its blocks, or None where it has a value. `dynamic` is unfolded."""
    for name, value in body.items():
        if name in _MARKS:
            continue
        if name == "dynamic":
            for each in value:
                for label, dynamic in each.items():
                    if label not in _MARKS:
                        yield bare(label), dynamic["content"]
        elif _is_blocks(value):
            yield name, value
        else:
            yield name, None


def _is_blocks(value: object) -> bool:
    return isinstance(value, list) and any(
        isinstance(each, dict) and "__is_block__" in each for each in value
    )
