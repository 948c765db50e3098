"""Every schema is a valid one, and its examples are what their folders say."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
FILES = sorted(SCHEMAS.glob("*.schema.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_schema_is_valid_and_versioned_in_its_file_name(path: Path) -> None:
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == path.name.removesuffix(".schema.json")


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
