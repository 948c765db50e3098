"""The shipped policy is a legal one, and its patterns mean what they say."""

import pytest
from google.cloud.aiplatform_v1.types import AcceleratorType
from jsonschema import Draft202012Validator

from orchestrator.core.policy import matches, policy_from, repository
from tests.core.standards import NAMES, policy_document, schema

POLICY = policy_from(policy_document(), NAMES)


def test_the_shipped_policy_is_as_its_schema_says() -> None:
    Draft202012Validator(schema("policy.v1")).validate(policy_document())


def test_the_shipped_policy_names_only_accelerators_that_the_service_has() -> None:
    named = {name for row in POLICY.machines for name in row.accelerators or {}}
    assert named <= set(AcceleratorType.__members__)


def test_no_machine_type_stands_in_two_rows() -> None:
    every = [name for row in POLICY.machines for name in row.types]
    assert len(every) == len(set(every))


def test_an_unknown_name_in_a_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\$\{tenant\}.*allowed: models_bucket, project, region"):
        policy_from({**policy_document(), "images": ["${tenant}/**"]}, NAMES)


@pytest.mark.parametrize(
    ("pattern", "text", "meant"),
    [
        ("*-docker.pkg.dev/**", "us-docker.pkg.dev/p/r/i", True),
        ("*-docker.pkg.dev/**", "evil.com/x-docker.pkg.dev/p", False),
        ("gcr.io/*", "gcr.io/a/b", False),
        ("gcr.io/*", "gcrxio/a", False),
        ("a", "a\n", False),
        ("AIP_*", "AIP_", True),
    ],
)
def test_patterns_match_whole_texts(pattern: str, text: str, meant: bool) -> None:
    assert matches(pattern, text) is meant


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("h/p/i:tag", "h/p/i"),
        ("h/p/i@sha256:0", "h/p/i"),
        ("h/p/i:tag@sha256:0", "h/p/i"),
        ("localhost:5000/i", "localhost:5000/i"),
        ("i", "i"),
    ],
)
def test_the_repository_of_an_image_has_neither_tag_nor_digest(image: str, name: str) -> None:
    assert repository(image) == name
