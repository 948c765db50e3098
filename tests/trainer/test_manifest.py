"""export.json says what was exported."""

import hashlib
import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainer.export.manifest import (
    described_metrics,
    file_entries,
    finished_export,
    job_of,
    manifest_of,
    metrics_of,
    write_manifest,
)


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


def test_metrics_of_a_training_that_diverged_are_kept_in_plain_json(model: Path) -> None:
    metrics = {"loss": math.nan, "val_loss": -math.inf, "accuracy": 0.5}
    made = manifest_of(
        model, model_uri="gs://b/m/", created_at=datetime.now(UTC), description=described_metrics(metrics)
    )
    written = json.loads(write_manifest(model, made).read_text(), parse_constant=pytest.fail)
    assert written["metrics"] == {"accuracy": 0.5}
    assert written["not_finite"] == {"loss": "nan", "val_loss": "-inf"}
    assert repr(metrics_of(written)) == repr({"accuracy": 0.5, "loss": math.nan, "val_loss": -math.inf})
    assert "not_finite" not in described_metrics({"loss": 0.5})


JOB = {"job_id": "7", "trial_id": "2"}


def export(model: Path, job: object = JOB) -> Path:
    description = {"job": job} if job else {}
    made = manifest_of(model, model_uri="gs://b/m/", created_at=datetime.now(UTC), description=description)
    return write_manifest(model, made)


def test_a_job_is_known_by_its_id_and_its_trials() -> None:
    assert job_of({"CLOUD_ML_JOB_ID": "7", "CLOUD_ML_TRIAL_ID": "2", "AIP_MODEL_DIR": "gs://b/m/"}) == JOB
    assert job_of({"CLOUD_ML_JOB_ID": "7"}) == {"job_id": "7"}
    assert job_of({"CLOUD_ML_TRIAL_ID": "2"}) is None


def test_an_export_is_finished_for_the_job_that_wrote_it_alone(model: Path) -> None:
    assert finished_export(model, JOB) is None
    export(model)
    found = finished_export(model, JOB)
    assert found is not None
    assert found["job"] == JOB
    for other in ({"job_id": "8", "trial_id": "2"}, {"job_id": "7", "trial_id": "3"}, {"job_id": "7"}, None):
        assert finished_export(model, other) is None
    export(model, job=None)
    assert finished_export(model, JOB) is None


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index"])
def test_an_export_that_lacks_a_file_or_a_part_of_one_is_not_finished(model: Path, name: str) -> None:
    export(model)
    (model / name).write_bytes(b"another size")
    assert finished_export(model, JOB) is None
    (model / name).unlink()
    assert finished_export(model, JOB) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "[" * 100_000, '{"files": [1]}', '{"files": []}', " " * (5 << 20)]
)
def test_another_programs_manifest_is_no_finished_export(model: Path, text: str) -> None:
    export(model).write_text(text)
    assert finished_export(model, JOB) is None
