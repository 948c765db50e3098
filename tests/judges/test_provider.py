"""The judge of Terraform's resources finds what `terraform validate` would."""

import hcl2
import pytest

from tests.deploy.hcl import Block
from tests.judges.provider import faults_of

SOUND = """
  name = "a"
  location = "b"
  lifecycle_rule {
    action { type = "Delete" }
    condition { age = 1 }
  }
"""


def bucket(body: str) -> list[str]:
    (resource,) = hcl2.loads(f'resource "google_storage_bucket" "x" {{\n{body}\n}}\n')["resource"]
    ((_, named),) = resource.items()
    ((_, content),) = ((name, each) for name, each in named.items() if "x" in name)
    return faults_of(
        Block(kind="resource", type="google_storage_bucket", name="x", file="x.tf", body=content)
    )


def test_a_sound_resource_has_no_fault() -> None:
    assert bucket(SOUND) == []
    assert bucket(SOUND + SOUND[SOUND.index("lifecycle_rule") :]) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (('name = "a"', ""), "google_storage_bucket: name is missing"),
        (('location = "b"', ""), "google_storage_bucket: location is missing"),
        (("age = 1", "ages = 1"), "google_storage_bucket.lifecycle_rule.condition: ages is unknown"),
        (("lifecycle_rule", "lifecycle_rules"), "google_storage_bucket: lifecycle_rules is unknown"),
        (('type = "Delete"', ""), "google_storage_bucket.lifecycle_rule.action: type is missing"),
        (
            ("condition { age = 1 }", 'condition = "x"'),
            "google_storage_bucket.lifecycle_rule: condition is a block",
        ),
        (('location = "b"', "location {}"), "google_storage_bucket: location is not a block"),
        (
            ("condition { age = 1 }", "condition { age = 1 }\ncondition { age = 2 }"),
            "google_storage_bucket.lifecycle_rule: condition is given 2 times",
        ),
    ],
)
def test_what_the_provider_refuses_is_a_fault(change: tuple[str, str], fault: str) -> None:
    assert change[0] in SOUND
    assert bucket(SOUND.replace(*change)) == [fault]
