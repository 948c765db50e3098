"""`from trainmaster import connect` on a stack: the notebook, and what the command would say about the same runs."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command import trainmaster
from trainmaster import Connection, NotFound, RunFailed, connect
from trainmaster.client.errors import ClientRefused, TimedOut

from .project import ROOT, Project

pytestmark = pytest.mark.slow(20)
NOTEBOOK = ROOT / "examples/notebook/first_champion.ipynb"
LINES_MAX = 20
SCRIPT = """
import json, os, pathlib, signal, sys
print("started with", *sys.argv[1:], flush=True)
if "--fail" in sys.argv: raise MemoryError("too large")
if "--wait" in sys.argv: signal.pause()
root, uri = os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), os.environ["AIP_MODEL_DIR"]
folder = pathlib.Path(root, uri.removeprefix("gs://"))
folder.mkdir(parents=True, exist_ok=True)
(folder / "model.bin").write_bytes(b"weights")
(folder / "metrics.json").write_text(json.dumps({"score": float(sys.argv[-1])}))
"""


@pytest.fixture
def tm(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A connection from a folder with a script."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    with connect(f"local:{project.state}") as connection:
        yield connection


def test_the_notebook_becomes_a_champion_in_twenty_lines_with_the_outputs_that_it_has(
    project: Project, tm: Connection, tmp_path: Path
) -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert sum(bool(line.strip()) for cell in cells for line in cell["source"]) <= LINES_MAX
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.notebook", NOTEBOOK.name],
        cwd=shutil.copytree(NOTEBOOK.parent, tmp_path / "notebook"),
        env=os.environ | {"TRAINMASTER_CONTEXT": f"local:{project.state}", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [cell["outputs"] for cell in cells]
    assert tm.champion("curve").value == 0.012


def test_a_champion_is_rolled_back(tm: Connection) -> None:
    rule = {"champion": {"metric": "score", "goal": "maximize"}}
    runs = [
        tm.submit(script="train.py", args=[score], name="face-best", set=rule).wait()
        for score in ("0.5", "0.7")
    ]
    champion = tm.champion("face-best")
    assert (champion.run_id, champion.value) == (runs[1].id, 0.7)
    assert champion.rollback().run_id == runs[0].id
    assert (tm.champion("face-best").download() / "model.bin").read_bytes() == b"weights"
    with pytest.raises(ClientRefused, match="no champion before it"):
        champion.rollback()


def test_a_run_is_what_the_command_shows_of_it(project: Project, tm: Connection, tmp_path: Path) -> None:
    run = tm.submit(script="train.py", args=["0.5"], name="face").wait()

    def shown(verb: str) -> Any:  # Any: JSON
        words = (verb, run.id, "--context", f"local:{project.state}", "-o", "json")
        return json.loads(trainmaster(*words, cwd=tmp_path, environment={"HOME": str(tmp_path)}).out)

    assert (run.document, run.why()) == (shown("status"), shown("why"))
    assert (run.state, run.metrics, run.group) == ("succeeded", {"score": 0.5}, (run,))
    assert run.cost is not None
    assert (run.model.download("model") / "model.bin").read_bytes() == b"weights"
    (tmp_path / "model" / "model.bin").write_text("mine")
    with pytest.raises(ClientRefused, match=r"model\.bin exists and differs"):
        run.model.download("model")
    assert [each.id for each in tm.runs(model="face", state="succeeded", limit=5)] == [run.id]
    assert tm.run(run.id).cancel().state == "succeeded"
    assert "face" in [model.name for model in tm.models()]


def test_a_log_is_followed_while_other_tasks_run(tm: Connection) -> None:
    run = tm.submit(script="train.py", args=["0.5"], name="face-log")

    async def follow() -> list[str]:
        lines = [str(line) async for line in run.follow_async()]
        assert (await run.wait_async()).state == "succeeded"
        return lines

    lines = asyncio.run(follow())
    assert "workerpool0-0 | started with 0.5" in lines
    assert [str(line) for line in run.follow()] == lines
    assert [str(line) for line in run.log(tail=2)] == lines[-2:]


def test_a_failure_says_why_and_what_repairs_it(tm: Connection) -> None:
    run = tm.submit(script="train.py", args=["--fail"], name="face-fails")
    with pytest.raises(
        RunFailed, match=r"MemoryError: too large[^$]*Likely repair: use a smaller batch"
    ) as failed:
        run.wait()
    assert failed.value.run is run
    with pytest.raises(NotFound, match="has no model"):
        _ = run.model


def test_a_wait_ends_in_time_and_the_run_can_be_cancelled(tm: Connection) -> None:
    run = tm.submit(script="train.py", args=["--wait"], name="face-waits")
    with pytest.raises(TimedOut, match="Keep waiting"):
        run.wait(timeout=0.1)

    async def wait() -> None:
        async with asyncio.timeout(0.1):
            await run.wait_async()

    with pytest.raises(TimeoutError):
        asyncio.run(wait())
    with pytest.raises(RunFailed, match="cancelled"):
        run.cancel().wait()


def test_one_key_starts_one_run(tm: Connection) -> None:
    cluster = {"chief": {"machine": "n1-standard-4"}}
    request = {"model_name": "face-key", "script": {"file": "train.py"}, "args": ["1"], "cluster": cluster}
    first = tm.submit(request, key="face-key-1").wait()
    assert tm.submit(request, key="face-key-1").id == first.id
    with pytest.raises(ClientRefused, match="already started"):
        tm.submit(request, key="face-key-1", machine="n1-standard-8")
