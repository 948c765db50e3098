"""Every parameter of a served method and every field of its body is honoured, refused, or without effect in the service."""

import re
from typing import Any

import pytest

from tests.judges.discovery import Api
from trainstack.vertex.resources.methods import OPERATIONS, methods
from trainstack.vertex.resources.rest import SURFACE

DOCUMENT = Api(name="aiplatform.v1").document
SERVED = [method for service, method in methods() if service != OPERATIONS]
IN_THE_PATH = {"name", "parent", "context", "execution"}


def served_name(verb: str, path: str) -> str:
    """The name in gRPC of the method with this HTTP rule; empty if it is not served."""
    filled = "/" + re.sub(r"\{[^}]*\}", "1", path)
    return next((m.name for m in SERVED if m.verb == verb and m.pattern.fullmatch(filled)), "")


METHODS = {served_name(method["verb"], method["path"]): method for method in DOCUMENT["methods"].values()}


def schema_of(body: str) -> dict[str, Any]:
    return dict(DOCUMENT["schemas"][f"GoogleCloudAiplatformV1{body}"]["properties"])


@pytest.mark.parametrize("method", [method.name for method in SERVED])
def test_every_parameter_of_a_method_is_in_the_table(method: str) -> None:
    query = {name for name, each in METHODS[method]["parameters"].items() if each["location"] == "query"}
    assert SURFACE.methods[method].kinds.keys() == query
    assert SURFACE.parameters.kinds.keys() >= DOCUMENT["query"].keys()


@pytest.mark.parametrize("body", sorted(SURFACE.bodies))
def test_every_field_of_a_body_is_in_the_table_and_none_that_the_service_lacks(body: str) -> None:
    names, fields = SURFACE.bodies[body], schema_of(body)
    tops = {path.partition(".")[0] for path in names.kinds}
    assert {name for name in fields if not names.kind_of(name)} == set()
    assert tops - fields.keys() - IN_THE_PATH == set()
    for path in names.kinds:
        *outer, last = path.split(".")
        assert not outer or last in fields_at(body, outer), path


def fields_at(body: str, path: list[str]) -> dict[str, Any]:
    """The fields of what a path leads to, through lists too."""
    fields = schema_of(body)
    for name in path:
        reference = fields[name].get("$ref") or fields[name]["items"]["$ref"]
        fields = DOCUMENT["schemas"][reference]["properties"]
    return fields
