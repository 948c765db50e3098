"""`trainmaster logs`, `watch` and `download` against a running stack."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.project import Project, eventually, request
from tests.e2e.verbs.conftest import Trainmaster
from trainmaster.client.files.downloaded import LIST

pytestmark = pytest.mark.slow


def test_the_model_is_downloaded_as_it_is_on_record(
    trainmaster: Trainmaster, trained: dict[str, Any], tmp_path: Path
) -> None:
    done = trainmaster("download", trained["run_id"], str(tmp_path / "model"))
    assert done.status == 0, done.err
    added = {"export.json", LIST}
    sizes = [path.stat().st_size for path in (tmp_path / "model").rglob("*") if path.name not in added]
    assert sum(sizes) == trained["model"]["files"]["size_bytes"]


def test_a_run_is_watched_from_its_beginning(
    trainmaster: Trainmaster, stack: Project, trained: dict[str, Any]
) -> None:
    stack.drop("requests/watched.yaml", request(stack.id))
    eventually(
        lambda: (stack.status("requests/watched.yaml") or {}).get("run_id"), "the upload has started a run"
    )
    done = trainmaster("watch", "requests/watched.yaml")
    assert done.status == 0, done.err
    assert done.out.count("Record closed  succeeded: ") == 1
