"""What importing the trainer does and does not do."""

import sys
from pathlib import Path

import pytest

from tests.processes import run_to_end
from trainer.faults import Unusable
from trainer.workloads import workload_named, workload_names

ROOT = Path(__file__).resolve().parents[2]


def test_the_package_chooses_keras_2_and_a_wrong_flag_is_refused_before_tensorflow_loads() -> None:
    program = (
        "import os, sys; import trainer.task\n"
        "with trainer.survive.end_on_error():\n"
        "    try: trainer.task.main(['--epoch=1'], {})\n"
        "    finally: print(os.environ['TF_USE_LEGACY_KERAS'], 'tensorflow' in sys.modules)"
    )
    done = run_to_end(
        [sys.executable, "-c", program], cwd=ROOT, env={"TF_USE_LEGACY_KERAS": "0", "PATH": "/usr/bin"}
    )
    assert (done.returncode, done.stdout.split()) == (2, ["1", "False"])
    assert "Did you mean 'epochs'?" in done.stderr


def test_a_file_beside_the_others_is_a_workload() -> None:
    files = {path.stem for path in (ROOT / "trainer" / "workloads").glob("*.py")} - {"__init__"}
    assert set(workload_names()) == files
    with pytest.raises(Unusable, match=r"Unknown workload 'resnet5'.* Did you mean 'resnet50'\?"):
        workload_named("resnet5")
