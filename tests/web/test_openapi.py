"""The description of the API: valid, whole, and true of the documents."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.web.routes import action_paths, api_paths
from trainmaster.web.openapi import description
from trainmaster.web.pages import SUBJECTS

DOCUMENT: dict[str, Any] = json.loads(json.dumps(description(SUBJECTS)))
OPERATION = {
    "type": "object",
    "required": ["summary", "responses"],
    "properties": {
        "summary": {"type": "string", "minLength": 5, "pattern": r"\.$"},
        "parameters": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "in", "schema"],
                "properties": {
                    "in": {"enum": ["path", "query"]},
                    "schema": {"type": "object", "required": ["type"]},
                },
                "if": {"properties": {"in": {"const": "path"}}},
                "then": {"properties": {"required": {"const": True}}, "required": ["required"]},
                "else": {"required": ["description"]},
            },
        },
        "responses": {"type": "object", "required": ["200", "default"]},
    },
}
"""The parts of https://spec.openapis.org/oas/3.1/schema/2022-10-07 that the description has."""
SCHEMA = {
    "type": "object",
    "required": ["openapi", "info", "paths", "components"],
    "properties": {
        "openapi": {"const": "3.1.0"},
        "info": {"type": "object", "required": ["title", "version"]},
        "servers": {"const": [{"url": "/api/v1"}]},
        "paths": {
            "type": "object",
            "propertyNames": {"pattern": r"^(/([a-z0-9.-]+|\{\w+\}))+$"},
            "additionalProperties": {
                "type": "object",
                "minProperties": 1,
                "properties": {"get": OPERATION, "post": OPERATION},
                "additionalProperties": False,
            },
        },
    },
}


def operations() -> list[tuple[str, dict[str, Any]]]:
    return [(path, each) for path, methods in DOCUMENT["paths"].items() for each in methods.values()]


def test_the_description_has_the_form_of_openapi() -> None:
    Draft202012Validator(SCHEMA).validate(DOCUMENT)


def test_every_route_is_described_and_nothing_else() -> None:
    plain = {re.sub(r"\{(\w+):\w+\}", r"{\1}", path) for path in (*api_paths(), *action_paths())}
    assert plain == set(DOCUMENT["paths"])
    assert all(
        "post" in DOCUMENT["paths"][re.sub(r"\{(\w+):\w+\}", r"{\1}", path)] for path in action_paths()
    )


@pytest.mark.parametrize(("path", "operation"), operations())
def test_the_variables_of_a_path_are_its_parameters(path: str, operation: dict[str, Any]) -> None:
    parameters = operation.get("parameters", [])
    assert [each["name"] for each in parameters if each["in"] == "path"] == re.findall(r"\{(\w+)\}", path)
    names = [each["name"] for each in parameters]
    assert len(names) == len(set(names))


def test_every_reference_leads_to_a_valid_schema() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    own = re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(DOCUMENT["paths"]))
    assert set(own) == set(schemas)
