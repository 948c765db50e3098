"""Every reference in the Terraform configuration is to something that is there, and nothing waits for itself.

`terraform validate` would say so too, but needs the provider.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy.hcl import TERRAFORM, bare, blocks, loaded

_RESOURCE = re.compile(r"(?<![\w.])(data\.)?((?:google|time|terraform|archive)_\w+)\.(\w+)")
_NAMED = re.compile(r"(?<![\w.])(var|local|module\.plan)\.(\w+)")
_EACH = re.compile(r"(?<![\w.])each\.")


def texts(value: object) -> Iterator[str]:
    """Every text in a body, keys too: a map's key may be an expression."""
    match value:
        case str():
            yield value
        case dict():
            for key, inner in value.items():
                yield str(key)
                yield from texts(inner)
        case list():
            for inner in value:
                yield from texts(inner)


def locals_of(folder: Any) -> dict[str, Any]:
    return {
        name: value
        for content in loaded(folder).values()
        for each in content.get("locals", [])
        for name, value in each.items()
        if not name.startswith("__")
    }


def declared(kind: str, folder: Any) -> set[str]:
    return {
        bare(name)
        for content in loaded(folder).values()
        for each in content.get(kind, [])
        for name in each
        if not name.startswith("__")
    }


@pytest.mark.parametrize("folder", [TERRAFORM, TERRAFORM / "plan"], ids=lambda folder: folder.name)
def test_every_variable_and_local_is_declared_and_used(folder: Any) -> None:
    named: dict[str, set[str]] = {"var": set(), "local": set()}
    for content in loaded(folder).values():
        for text in texts(content):
            for kind, name in _NAMED.findall(text):
                named.setdefault(kind, set()).add(name)
    assert named["var"] == declared("variable", folder)
    # The root module takes the plan's locals through its outputs.
    assert named["local"] == set(locals_of(folder))


def test_every_output_of_the_plan_that_is_taken_is_given_and_the_other_way_round() -> None:
    taken = {
        name
        for content in loaded().values()
        for text in texts(content)
        for kind, name in _NAMED.findall(text)
        if kind == "module.plan"
    }
    assert taken == declared("output", TERRAFORM / "plan")


def test_every_resource_that_is_referred_to_exists() -> None:
    existing = {(each.kind, each.type, each.name) for each in blocks()}
    for file, content in loaded().items():
        for text in texts(content):
            for data, type_, name in _RESOURCE.findall(text):
                assert ("data" if data else "resource", type_, name) in existing, f"{file}: {type_}.{name}"
