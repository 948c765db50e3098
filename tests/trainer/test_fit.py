"""What `fit` promises, and docs/reference/trainer-fit.md says about it: the same programs with both, undisturbed and killed."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.conftest import ROOT
from tests.trainer.warm import WarmProcess
from trainer.checkpoints.files import latest
from trainer.faults import Unusable
from trainer.training.callbacks import callbacks_from

pytestmark = [pytest.mark.slow(seconds=60), pytest.mark.timeout(900)]
PAGE = ROOT / "docs" / "reference" / "trainer-fit.md"
BY = ("fit", "calm", "again")
ALL = ("weights", "metrics", "calls", "rates", "params", "files", "history", "eager")
Results = Mapping[str, Any]
FOLDERS: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where the programs run."""
    FOLDERS.append(tmp_path_factory.mktemp("fit"))


def folder_of(case: str) -> Path:
    folder = FOLDERS[-1] / case.replace(" ", "-")
    folder.mkdir()
    return folder


def ended(case: str, mode: str, folder: Path) -> tuple[int, str]:
    """The status and the errors of a process of tests.trainer.fit_cases."""
    process = WarmProcess(
        "tests.trainer.fit_cases", case, mode, str(folder),
        cwd=ROOT, environment={"PATH": "/usr/bin:/bin"}, out=folder / f"{mode}.out", err=folder / f"{mode}.err",
    )  # fmt: skip
    return process.wait(300), (folder / f"{mode}.err").read_text()


@cache
def results(case: str) -> Results:
    """What `fit`, an undisturbed run, and one that was killed and started again have left."""
    folder, found = folder_of(case), dict[str, Any]()
    for mode, expected in (("first", (9, 0)), ("again", (0,))):
        status, errors = ended(case, mode, folder)
        assert status in expected, errors[-3000:]
        found |= json.loads((folder / f"{mode}.json").read_text())
        if not status and mode == "first":
            break  # a case that is not killed
    return found


def same(case: str, *fields: str, of: tuple[str, ...] = BY) -> Callable[[], None]:
    def check() -> None:
        found = results(case)
        for name in fields or ALL:
            for one in of[1:]:
                assert found[one][name] == found[of[0]][name], (case, one, name)

    return check


def of_exported(*cases: str) -> Callable[[], None]:
    """The numbers on record are those that plain TensorFlow computes with the exported model."""

    def check() -> None:
        for case in cases:
            for by in ("calm", "again"):
                found = results(case)[by]
                assert found["recorded"]["val_mae"] == pytest.approx(found["served"], rel=1e-5)
                assert found["metrics"] == {
                    name: round(value, 4) for name, value in found["recorded"].items() if "val" in name
                }

    return check


def best_epoch() -> None:
    found = results("best by flag")
    assert found["again"]["metrics"]["val_loss"] == min(found["fit"]["history"]["val_loss"])
    assert found["again"]["weights"] == found["calm"]["weights"]
    same("best")()


def evaluated_twice() -> None:
    same("files")()
    assert len(results("files")["calm"]["history"]["val_loss"]) == 2, "of four epochs"


def diverged(case: str) -> Callable[[], None]:
    def check() -> None:
        folder = folder_of(case)
        status, errors = ended(case, "again", folder)
        assert status == 1
        assert "Diverged: the loss is" in errors
        kept = latest(folder / "killed" / "output" / "checkpoints")
        assert kept is not None
        assert (kept.epoch, kept.step) == (2, 0)

    return check


def stopped() -> None:
    for case in ("stopped", "stopped in an epoch", "stopped as an epoch begins"):
        same(case, "weights", "rates", "history")()


def several_steps_at_once() -> None:
    """Checkpoints, due every 3 steps, wait for the end of the 4 that run in one call."""
    same("stopped", "weights", "history")()
    events = map(json.loads, (FOLDERS[-1] / "stopped" / "first.out").read_text().splitlines())
    saved = [(event["epoch"], event["step"]) for event in events if event["event"] == "checkpoint_saved"]
    undisturbed = [
        (0, 4),
        (1, 0),
        (1, 4),
        (2, 0),
        (2, 4),
        (3, 0),
        (4, 0),
    ]  # the last as a callback stopped it
    assert saved[: len(undisturbed)] == undisturbed


def backup_is_refused() -> None:
    backup = type("BackupAndRestore", (), {"on_epoch_end": print})
    with pytest.raises(Unusable, match="Remove it: a restarted run continues by itself"):
        callbacks_from([backup()])


LINES: dict[str, Callable[[], None]] = {
    "order and logs of calls": same("plateau of Keras 3"),
    "`params`": same("plateau", "params"),
    "`history`": same("plateau", "history"),
    "`stop_training`": stopped,
    "learning rate": same("plateau", "rates"),
    "weights in `on_epoch_end`": same("plateau", "weights"),
    "weights in `on_train_end`": same("averages"),
    "loss weights": same("plateau", "weights", "metrics"),
    "attributes of callbacks": same("plateau", "weights", "calls"),
    "`trainable`": same("by XLA", "weights", of=("fit", "calm")),
    "`use_ema`": same("swapped averages"),
    "`run_eagerly`": same("eager"),
    "`jit_compile=True`": same("by XLA", "history", of=("fit", "calm")),
    "`steps_per_execution`": several_steps_at_once,
    "`sample_weight`": same("files", "weights", "metrics"),
    "`validation_freq`": evaluated_twice,
    "`initial_epoch`": same("files", "calls"),
    "a loss that is not finite": diverged("diverging"),
    "metrics on record": of_exported("plateau", "best", "averages", "swapped averages", "best by flag"),
    "BackupAndRestore": backup_is_refused,
    "CSVLogger": same("files", "files"),
    "EarlyStopping": same("stopped", "weights", "metrics"),
    "EarlyStopping(restore_best_weights=True)": best_epoch,
    "History": same("stopped", "history"),
    "LambdaCallback": same("files", "files"),
    "LearningRateScheduler": same("files", "rates"),
    "ModelCheckpoint": same("files", "files"),
    "ProgbarLogger": same("files", "calls"),
    "ReduceLROnPlateau": same("plateau", "rates", "history"),
    "RemoteMonitor": same("files", "files"),
    "SwapEMAWeights": same("swapped averages"),
    "TensorBoard": same("files", "files"),
    "TerminateOnNaN": diverged("diverging, watched"),
}


def lines_of_the_page() -> dict[str, str]:
    rows = [
        line.strip("|\n ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")
    ]
    return {row[0]: row[1] for row in rows if row[0] != "of `fit`"}


def test_each_line_of_the_page_has_a_test_and_says_kept_refused_or_differs() -> None:
    lines = lines_of_the_page()
    assert list(lines) == list(LINES)
    assert all(state.startswith(("kept", "refused", "differs")) for state in lines.values())


@pytest.mark.parametrize("line", LINES)
def test_the_trainer_keeps_what_fit_promises_or_differs_as_the_page_says(line: str) -> None:
    LINES[line]()
