"""The paths that a smoke run gives to its replicas, and what it reads of them."""

import os
from pathlib import Path

import pytest

from trainmaster.inspect.smoke.stage import MAX_READ_BYTES, SmokeStage
from trainmaster.inspect.smoke.uris import Paths, paths_for
from trainmaster.inspect.tree import read_source, tree_at


def test_of_output_of_any_size_the_end_is_read(tmp_path: Path) -> None:
    stage = SmokeStage(base=tmp_path, metric="", uses_uris=False)
    (tmp_path / "chief" / "metrics").mkdir(parents=True)
    for path, line in (
        (stage.output("chief", "stderr"), b"ValueError: the last line\n"),
        (tmp_path / "chief" / "metrics" / "output.metrics", b'{"accuracy": "0.5"}\n'),
    ):
        with path.open("wb") as file:
            file.truncate(1 << 40)  # takes no room
            file.seek(0, os.SEEK_END)
            file.write(b"\n" + line)
    errors = stage.errors("chief")
    assert len(errors) == MAX_READ_BYTES
    assert errors.endswith("\nValueError: the last line\n")
    assert stage.reported_metrics("chief") == {"accuracy": "0.5"}


@pytest.mark.parametrize(
    ("source", "doubt"),
    [
        ("import torch, numpy, xgboost", None),
        ("from trainer import survive", None),
        ("import tensorflow, os\nos.environ.get('TRAINMASTER_GCS_ROOT', '/gcs')", None),
        ("import tensorflow, os\nos.environ['AIP_MODEL_DIR'].replace('gs://', '/gcs/')", ""),
        ("import tensorflow as tf", "tensorflow can write to gs:// URIs, functions for plain files cannot"),
        ("import torch, ours_elsewhere", "ours_elsewhere is imported but is not in the tree"),
        ("import subprocess\nsubprocess.run(['gsutil', 'cp'])", "the program names 'gsutil'"),
    ],
)
def test_a_program_gets_uris_unless_it_may_write_to_them(
    source: str, doubt: str | None, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(source)
    paths = paths_for(read_source(tree_at(tmp_path), None))
    assert paths == (Paths(are_uris=True) if doubt is None else Paths(are_uris=False, doubt=doubt))
