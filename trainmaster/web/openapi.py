"""The description of /api/v1 in OpenAPI 3.1, made from the routes and the schemas of their documents."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.client.submission.terms import schema
from trainmaster.version import VERSION
from trainmaster.web.subject import ApiRoute, ConsoleAction, ConsoleSubject, QueryParameter

_VARIABLE = re.compile(r"\{(\w+)(?::\w+)?\}")


def description(subjects: Sequence[ConsoleSubject]) -> dict[str, Any]:
    """The document at /api/v1/openapi.json. Source: https://spec.openapis.org/oas/v3.1.1"""
    routes = [route for subject in subjects for route in subject.api]
    actions = [action for subject in subjects for action in subject.actions]
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(_path(route.path), {})["post" if route.takes_form else "get"] = _reading(route)
    for action in actions:
        paths.setdefault(_path(action.path), {})["post"] = _changing(action)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Trainmaster's console", "version": VERSION},
        "servers": [{"url": "/api/v1"}],
        "paths": paths,
        "components": {
            "schemas": {
                name: schema(name) for name in sorted({route.schema for route in routes if route.schema})
            },
            "securitySchemes": {"session": {"type": "http", "scheme": "bearer"}},
        },
    }


def _path(path: str) -> str:
    return _VARIABLE.sub(r"{\1}", path)


def _reading(route: ApiRoute) -> dict[str, Any]:
    reference = f"#/components/schemas/{route.schema}"
    schema = {"$ref": reference} if route.schema else {"type": ["object", "array"]}
    fields = {param.name: {"type": "string", "description": param.description} for param in route.parameters}
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": fields}}}}
    query = [] if route.takes_form else map(_in_query, route.parameters)
    return {
        "summary": route.summary,
        "parameters": [*_in_path(route.path), *query],
        **({"requestBody": body} if route.takes_form else {}),
        "responses": {"200": _content("The document.", schema), "default": _content("A fault.", _FAULT)},
    }


def _changing(action: ConsoleAction) -> dict[str, Any]:
    return {
        "summary": action.summary,
        "parameters": _in_path(action.path),
        "security": [{"session": []}],
        "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
        "responses": {
            "200": _content("Done.", {"type": "object", "required": ["message", "page"]}),
            "default": _content("A fault.", _FAULT),
        },
    }


def _content(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _in_path(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _VARIABLE.findall(path)
    ]


def _in_query(each: QueryParameter) -> dict[str, Any]:
    one = {"type": "integer" if each.is_number else "string"}
    schema = {"type": "array", "items": one} if each.repeated else one
    return {"name": each.name, "in": "query", "description": each.description, "schema": schema}


_FAULT = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["status", "message"],
            "properties": {"status": {"type": "integer"}, "message": {"type": "string"}},
        }
    },
}
