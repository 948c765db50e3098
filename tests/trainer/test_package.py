"""What importing the trainer does and does not do."""

import subprocess
import sys
from pathlib import Path

import pytest

from trainer.faults import Unusable
from trainer.workloads import names, workload_named

ROOT = Path(__file__).resolve().parents[2]


def test_the_package_itself_chooses_keras_2_and_a_wrong_flag_is_told_before_tensorflow_loads() -> None:
    program = (
        "import os, sys; import trainer.task\n"
        "with trainer.survive.ended():\n"
        "    try: trainer.task.main(['--epoch=1'], {})\n"
        "    finally: print(os.environ['TF_USE_LEGACY_KERAS'], 'tensorflow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"TF_USE_LEGACY_KERAS": "0", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (2, ["1", "False"])
    assert "Did you mean 'epochs'?" in done.stderr


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            '{"cluster": {"chief": ["a:1"]}, "task": {"type": "evaluator", "index": 0}}',
            "evaluator-0 evaluates the chief's checkpoints, but AIP_CHECKPOINT_DIR is not set",
        ),
        (
            '{"cluster": {"chief": ["a:1"], "ps": ["p:1"]}, "task": {"type": "ps", "index": 0}}',
            "needs at least one worker",
        ),
    ],
)
def test_a_replica_that_cannot_run_reports_why(spec: str, message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trainer.task"],
        cwd=ROOT,
        env={"TF_CONFIG": spec},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr


def test_a_file_beside_the_others_is_a_workload() -> None:
    files = {path.stem for path in (ROOT / "trainer" / "workloads").glob("*.py")} - {"__init__"}
    assert set(names()) == files
    with pytest.raises(Unusable, match=r"Unknown workload 'resnet5'.* Did you mean 'resnet50'\?"):
        workload_named("resnet5")
