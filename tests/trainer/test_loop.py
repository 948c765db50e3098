"""What a run reports of its steps, on one machine with two devices."""

import pytest

from tests.trainer.conftest import Runner
from tests.trainer.roles import TINY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_two_devices_report_the_mean_loss_of_both_while_an_epoch_runs(
    runner: Runner, horses_dir: object
) -> None:
    replica = runner.start(
        *TINY, f"--data_dir={horses_dir}", "--epochs=1", environment={}, module="tests.trainer.two_devices"
    )
    assert replica.wait() == 0, replica.err.read_text()[-3000:]
    (started,) = replica.events("train_started")
    assert (started["strategy"], started["replicas_in_sync"]) == ("MirroredStrategy", 2)
    (finished,) = replica.events("epoch_finished")
    last = replica.events("train_progress")[-1]
    assert last["step"] == last["steps_per_epoch"]
    assert last["loss"] == pytest.approx(finished["metrics"]["loss"], rel=1e-5)
    assert last["accuracy"] == pytest.approx(finished["metrics"]["accuracy"], rel=1e-5)
