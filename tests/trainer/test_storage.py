"""Names in the cloud and paths in the container."""

from pathlib import Path

import pytest

from trainer.faults import Unusable
from trainer.storage import copy_earlier_checkpoints, location_of, outputs_from


@pytest.fixture
def gcs(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "models").mkdir()
    return {"TRAINMASTER_GCS_ROOT": str(tmp_path)}


@pytest.mark.parametrize(
    ("uri", "path"),
    [("gs://models", ""), ("gs://models/", ""), ("gs://models/a/b/", "a/b"), ("gs://models/a//b", "a/b")],
)
def test_a_bucket_lies_below_the_root(gcs: dict[str, str], uri: str, path: str) -> None:
    found = location_of(uri, gcs)
    assert found.path == Path(gcs["TRAINMASTER_GCS_ROOT"], "models", path)
    assert found.is_shared
    assert found.directory_uri == uri.rstrip("/") + "/"


def test_a_path_stays_a_path(tmp_path: Path) -> None:
    found = location_of(str(tmp_path / "x"), {})
    assert found.path == tmp_path / "x"
    assert not found.is_shared
    assert found.directory_uri == f"file://{tmp_path}/x/"


def test_without_the_variable_buckets_are_expected_where_vertex_mounts_them() -> None:
    with pytest.raises(Unusable, match="directory /gcs/no-such-bucket-here does not exist"):
        location_of("gs://no-such-bucket-here/a", {})


@pytest.mark.parametrize("uri", ["gs://", "gs:///a", "gs://models/../ledger/x", "gs://../etc"])
def test_an_invalid_uri_is_refused(gcs: dict[str, str], uri: str) -> None:
    with pytest.raises(Unusable, match=r"Invalid URI"):
        location_of(uri, gcs)


def test_outputs_go_where_vertex_says(gcs: dict[str, str]) -> None:
    outputs = outputs_from(gcs | {"AIP_MODEL_DIR": "gs://models/r/model/"}, "gs://models/job")
    assert outputs.model.name == "gs://models/r/model/"
    assert outputs.checkpoints.path == Path(gcs["TRAINMASTER_GCS_ROOT"], "models", "job", "checkpoints")


def test_files_in_the_place_of_directories_are_all_refused_before_the_training(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("")
    (tmp_path / "b").write_text("")
    (tmp_path / "logs").symlink_to("nowhere")
    with pytest.raises(Unusable) as caught:
        outputs_from({"AIP_CHECKPOINT_DIR": f"{tmp_path}/b/c/d"}, str(tmp_path))
    model, checkpoints, logs = caught.value.faults
    assert model == (
        f"AIP_MODEL_DIR: '{tmp_path}/model/' cannot be a directory, because {tmp_path}/model is not one. Remove it, or "
        f"set AIP_MODEL_DIR or --job_dir to another directory."
    )
    assert f"because {tmp_path}/b is not one" in checkpoints
    assert f"because {tmp_path}/logs is not one" in logs


def test_the_chief_copies_the_checkpoints_of_an_earlier_run_once(gcs: dict[str, str], tmp_path: Path) -> None:
    earlier = tmp_path / "models/old/checkpoints/chief"
    earlier.mkdir(parents=True)
    (earlier / "ckpt-7").write_text("seven")
    environment = {
        **gcs,
        "AIP_CHECKPOINT_DIR": "gs://models/new/checkpoints/",
        "TRAINMASTER_CONTINUE_FROM": "gs://models/old/checkpoints/",
    }
    outputs = outputs_from(environment, str(tmp_path / "job"))
    copy_earlier_checkpoints(outputs, environment, is_chief=True)
    copied = tmp_path / "models/new/checkpoints/chief/ckpt-7"
    assert copied.read_text() == "seven"
    copied.unlink()  # as the run does once it has newer ones
    for is_chief in (True, False):
        copy_earlier_checkpoints(outputs, environment, is_chief=is_chief)
    assert (copied.exists(), (earlier / "ckpt-7").read_text()) == (False, "seven")
