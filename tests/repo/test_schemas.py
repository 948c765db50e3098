"""Every schema is a valid one, and its examples are what their folders say."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from trainmaster.resources import EDITOR_LINE

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "schemas"
FILES = sorted(SCHEMAS.glob("*.schema.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_schema_is_valid_and_versioned_in_its_file_name(path: Path) -> None:
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:trainmaster:schema:{path.name.removesuffix('.schema.json')}"


FOREIGN = ("vertex", "ai_platform")
"""Files in the formats of Google's tools, which have no schema here."""
WRITTEN_BY_PEOPLE = [
    *(path for path in sorted(ROOT.glob("examples/**/*.yaml")) if path.parent.name not in FOREIGN),
    *sorted(SCHEMAS.glob("examples/valid/*.yaml")),
]


@pytest.mark.parametrize("path", WRITTEN_BY_PEOPLE, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_example_begins_with_its_schema_so_that_editors_complete_and_check_it(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert first.startswith(EDITOR_LINE)
    named = (path.parent / first.removeprefix(EDITOR_LINE)).resolve()
    is_rule = "when" in yaml.safe_load(path.read_text())
    of_example = "retraining_rule.v1" if is_rule else "training_request.v1"
    schema_id = of_example if path.is_relative_to(ROOT / "examples") else ".".join(path.name.split(".")[:2])
    assert named == SCHEMAS / f"{schema_id}.schema.json"


def examples(folder: str) -> list[Path]:
    found = sorted((SCHEMAS / "examples" / folder).glob("*.*"))
    assert found, f"no examples in {folder}"
    return found


def validator_of(example: Path) -> Draft202012Validator:
    """An example is named `<schema name>.<what it shows>.<json or yaml>`."""
    name = ".".join(example.name.split(".")[:2])
    return Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))


@pytest.mark.parametrize("example", examples("valid"), ids=lambda path: path.name)
def test_valid_examples_are_accepted(example: Path) -> None:
    validator_of(example).validate(yaml.safe_load(example.read_text()))


@pytest.mark.parametrize("example", examples("invalid"), ids=lambda path: path.name)
def test_invalid_examples_are_refused(example: Path) -> None:
    assert list(validator_of(example).iter_errors(yaml.safe_load(example.read_text())))


@pytest.mark.parametrize("path", WRITTEN_BY_PEOPLE, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_editor_finds_no_fault_in_an_example_with_its_placeholders(path: Path) -> None:
    schema = path.parent / path.read_text().splitlines()[0].removeprefix(EDITOR_LINE)
    Draft202012Validator(json.loads(schema.read_text())).validate(yaml.safe_load(path.read_text()))
