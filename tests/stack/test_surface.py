"""Tables of what a service honours."""

from pathlib import Path

import pytest

from trainstack.surface import MAX_FAULTS, Surface, load_surface

_TABLE = """
[parameters]
honoured = ["alt"]
without_effect = ["prettyPrint"]

[methods."objects.list"]
honoured = ["prefix"]
refused = ["filter", "softDeleted"]

[bodies.Bucket]
honoured = ["labels", "lifecycle", "iamConfiguration.uniformBucketLevelAccess"]
refused = ["autoclass", "lifecycle.rule.action.storageClass", "iamConfiguration"]
without_effect = ["id"]
"""


@pytest.fixture
def surface(tmp_path: Path) -> Surface:
    (tmp_path / "surface.toml").write_text(_TABLE)
    return load_surface(tmp_path / "surface.toml")


def test_a_parameter_is_accepted_only_if_the_method_honours_it_or_the_service_ignores_it(
    surface: Surface,
) -> None:
    query = {
        "alt": "json",
        "prettyPrint": "true",
        "prefix": "a",
        "filter": "x",
        "softDeleted": "false",
        "q": "1",
    }

    assert surface.query_faults("objects.list", query) == [
        "the parameter filter is not imitated by the local stack",
        "the parameter q is unknown",
    ]


def test_every_field_that_is_not_honoured_is_named_with_its_place(surface: Surface) -> None:
    body = {
        "id": "b",
        "labels": {"any": "value"},
        "autoclass": {"enabled": True},
        "iamConfiguration": {
            "uniformBucketLevelAccess": {"enabled": True},
            "publicAccessPrevention": "enforced",
        },
        "lifecycle": {"rule": [{"action": {"type": "Delete"}}, {"action": {"storageClass": "NEARLINE"}}]},
        "flavour": "sweet",
    }

    assert surface.body_faults("Bucket", body) == [
        "Bucket.autoclass is not imitated by the local stack",
        "Bucket.iamConfiguration.publicAccessPrevention is not imitated by the local stack",
        "Bucket.lifecycle.rule.action.storageClass is not imitated by the local stack",
        "Bucket.flavour is unknown",
    ]


@pytest.mark.parametrize("nothing", [None, {}, {"enabled": False}, {"enabled": False, "terms": []}])
def test_a_refused_field_that_asks_for_nothing_is_accepted(surface: Surface, nothing: object) -> None:
    assert surface.body_faults("Bucket", {"autoclass": nothing}) == []


def test_a_body_of_a_thousand_unknown_fields_is_refused_with_the_first(surface: Surface) -> None:
    assert len(surface.body_faults("Bucket", {f"f{n}": 1 for n in range(1000)})) == MAX_FAULTS


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ('honoured = ["a"]\nrefused = ["a"]', "parameters: a is in honoured and in refused"),
        ('honored = ["a"]', r"parameters: unknown lists \['honored'\]"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(tmp_path: Path, table: str, fault: str) -> None:
    (tmp_path / "surface.toml").write_text(f"[parameters]\n{table}\n[methods]\n[bodies]\n")

    with pytest.raises(ValueError, match=fault):
        load_surface(tmp_path / "surface.toml")
