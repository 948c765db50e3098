"""export.json says what was exported."""

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from trainer.manifest import file_entries, manifest_of, remove_manifest, write_manifest


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "variables").mkdir()
    (tmp_path / "saved_model.pb").write_bytes(b"graph")
    (tmp_path / "variables" / "variables.index").write_bytes(b"")
    return tmp_path


def test_every_file_is_listed_with_its_size_and_hash_sorted_by_path(model: Path) -> None:
    entries = file_entries(model)
    assert [entry["path"] for entry in entries] == ["saved_model.pb", "variables/variables.index"]
    assert [entry["size_bytes"] for entry in entries] == [5, 0]
    assert [entry["sha256"] for entry in entries] == [
        hashlib.sha256(part).hexdigest() for part in (b"graph", b"")
    ]
    # By md5sum(1), in base64, as Cloud Storage lists it.
    assert [entry["md5"] for entry in entries] == ["+LC5JOvXBG2/qFqFbkaCyA==", "1B2M2Y8AsgTpgAmY7PhCfg=="]


def test_the_manifest_does_not_list_itself_nor_leave_a_part_of_itself(model: Path) -> None:
    for _ in range(2):
        made = manifest_of(
            model, model_uri="gs://b/m/", created_at=datetime.now(UTC), description={"metrics": {}}
        )
        path = write_manifest(model, made)
    assert json.loads(path.read_text()) == made
    assert {entry["path"] for entry in made["files"]} == {"saved_model.pb", "variables/variables.index"}
    assert sorted(item.name for item in model.iterdir()) == ["export.json", "saved_model.pb", "variables"]


def test_its_time_is_utc(model: Path) -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert (
        manifest_of(model, model_uri="", created_at=noon, description={})["created_at"]
        == "2026-05-01T10:00:00Z"
    )


def test_a_new_export_first_takes_back_the_old_ones_promise(model: Path) -> None:
    write_manifest(model, {})
    remove_manifest(model)
    remove_manifest(model)
    assert not (model / "export.json").exists()
