"""Training with parameter servers: every role in its own process, and members that leave and return."""

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.conftest import ROOT, Runner, write_demo_dataset
from tests.trainer.exports import SERVE, check_export, run_program
from tests.trainer.roles import Roles, statuses
from trainer.checkpoints.files import latest
from trainer.replicas.liveness import SETTINGS_FRAME
from trainstack.process.ports import free_ports

EPOCHS = 6
LEARNS = ("--learning_rate=0.01", "--momentum=0.9", "--num_units=64")


LOSES = """
import sys, threading
from types import SimpleNamespace
from trainer.replicas.ending import end_for_loss
chief = SimpleNamespace(replica="chief-0")
if "deaf" in sys.argv:
    sys.stdout.close()
threading.Thread(target=end_for_loss, args=(chief, "ps-0", "it is not running")).start()
end_for_loss(chief, "a parameter server", "UnavailableError")
"""


@pytest.mark.parametrize("told", [1, 0])
def test_a_loss_that_two_threads_find_is_reported_once_and_ends_the_process_with_closed_pipes(
    told: int,
) -> None:
    command = [sys.executable, "-c", LOSES, *([] if told else ["deaf"])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 134, done.stderr
    assert done.stdout.count('"event": "peer_lost"') == told


@pytest.fixture(scope="module")
def figures_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """180 images to train on and 60 to evaluate: enough that a small model learns from them."""
    path = tmp_path_factory.mktemp("figures")
    write_demo_dataset(path, "--dataset=horses_or_humans", "--examples=240")
    return path


@pytest.mark.slow(seconds=80)
@pytest.mark.timeout(1500)
def test_all_roles_train_one_model_and_the_evaluator_computes_the_same_metrics(
    own_runner: Runner, figures_dir: Path
) -> None:
    own_runner.data_dir = figures_dir
    roles = Roles(
        runner=own_runner,
        counts={"chief": 1, "worker": 2, "ps": 2, "evaluator": 1},
        # A layer of 512 KiB and more lies in parts on both parameter servers.
        arguments=(
            *LEARNS,
            "--num_units=512",
            "--steps_per_epoch=40",
            "--batch_size=3",
            "--evaluation_split=test[:24]",
            f"--epochs={EPOCHS}",
        ),
        speaks="CLUSTER_SPEC",
    )
    replicas = roles.start_all()
    assert statuses(replicas) == dict.fromkeys(replicas, 0), replicas["chief-0"].err.read_text()[-3000:]
    chief = replicas["chief-0"]
    (started,) = chief.events("train_started")
    assert (started["strategy"], started["global_batch_size"]) == ("ParameterServerStrategy", 3)
    finished = [line["metrics"] for line in chief.events("epoch_finished")]
    assert len(finished) == EPOCHS
    assert finished[0]["loss"] > 0.6
    assert finished[-1]["loss"] < 0.8 * finished[0]["loss"]
    # The workers' updates race, so one epoch may end worse than the one before, on 24 images above all.
    assert min(metrics["val_loss"] for metrics in finished[1:]) < finished[0]["val_loss"]
    # Every example was evaluated exactly once, by any worker: the evaluator, alone, gets the same result.
    own = {line["epoch"]: line["metrics"] for line in replicas["evaluator-0"].events("evaluated")}
    assert EPOCHS in own
    for epoch, metrics in own.items():
        of_chief = finished[epoch - 1]
        assert metrics["loss"] == pytest.approx(of_chief["val_loss"], rel=1e-3)
        assert metrics["accuracy"] == pytest.approx(of_chief["val_accuracy"], abs=1e-6)
    manifest = check_export(own_runner.run_dir() / "model")
    assert manifest["training"]["strategy"] == "ParameterServerStrategy"
    assert manifest["metrics"]["val_accuracy"] == pytest.approx(finished[-1]["val_accuracy"])
    answer = run_program(SERVE, str(own_runner.run_dir() / "model"))["answer"]
    assert [sum(row) for row in answer["probabilities"]] == pytest.approx([1, 1, 1], abs=1e-5)
    for name in ("worker-0", "worker-1", "ps-0", "ps-1"):
        assert len(replicas[name].events("serving")) == 1
        assert replicas[name].events("train_started") == []
    # The weights of that model, in parts again, which a step of almost no length leaves as they are.
    model = f"--start_from={own_runner.run_dir() / 'model'}"
    flags = (
        "--learning_rate=1e-30",
        "--num_units=512",
        "--steps_per_epoch=1",
        "--evaluation_split=test[:24]",
    )
    counts = {"chief": 1, "worker": 1, "ps": 2}
    again = Roles(runner=own_runner, counts=counts, arguments=(*flags, "--epochs=1", model)).start_all()
    assert set(statuses(again).values()) == {0}, again["chief-0"].err.read_text()[-3000:]
    (epoch,) = again["chief-0"].events("epoch_finished")
    assert epoch["metrics"]["val_loss"] == pytest.approx(finished[-1]["val_loss"], rel=1e-4)


@pytest.fixture
def chief_that_leaves() -> Iterator[str]:
    """Something that answers as a chief's server does, once, and is gone."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_once() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(SETTINGS_FRAME)
                connection.recv(1024)
            server.close()

        thread = threading.Thread(target=answer_once, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_worker_may_leave_and_return_and_a_lost_parameter_server_ends_the_chief(
    own_runner: Runner, chief_that_leaves: str
) -> None:
    roles = Roles(
        runner=own_runner,
        counts={"chief": 1, "worker": 1, "ps": 1},
        arguments=("--learning_rate=0.001", "--epochs=1000", "--steps_per_epoch=12"),  # as long as it takes
    )
    spec = json.loads(roles.variables("worker", 0)["TF_CONFIG"])
    spec["cluster"]["chief"] = [chief_that_leaves]
    spec["cluster"]["worker"].append(f"127.0.0.1:{free_ports(1)[0]}")  # never contacted
    spec["task"]["index"] = 1
    elsewhere = {"TF_CONFIG": json.dumps(spec), "AIP_MODEL_DIR": "gs://models/another/model/"}
    forsaken = own_runner.start_replica("--workload=horses_or_humans", environment=elsewhere)

    replicas = roles.start_all()
    chief = replicas["chief-0"]
    chief.wait_until(lambda replica: replica.events("epoch_finished"))
    replicas["worker-0"].process.kill()
    replicas["worker-0"].process.wait()
    epochs_without = len(chief.events("epoch_finished"))
    again = roles.start("worker")
    chief.wait_until(lambda replica: len(replica.events("epoch_finished")) > epochs_without)

    chief.process.send_signal(signal.SIGTERM)
    assert chief.wait() == 143
    saved = chief.events("checkpoint_saved")[-1]
    chief = roles.start("chief")  # alone: those that serve are still there
    chief.wait_until(lambda replica: replica.events("epoch_finished"))
    (started,) = chief.events("train_started")
    assert (started["initial_epoch"], started["initial_step"]) == (saved["epoch"], saved["step"])

    replicas["ps-0"].process.kill()
    assert chief.wait() == 134
    (lost,) = chief.events("peer_lost")
    assert lost["severity"] == "ERROR"
    assert not (own_runner.run_dir() / "model" / "export.json").exists()

    checkpoint = latest(own_runner.run_dir() / "checkpoints")
    assert checkpoint is not None
    resumed = {name: roles.start(name, f"--epochs={checkpoint.epoch + 1}") for name in ("ps", "chief")}
    assert statuses(resumed | {"worker": again}) == {"ps": 0, "chief": 0, "worker": 0}
    assert check_export(own_runner.run_dir() / "model")["training"]["initial_epoch"] == checkpoint.epoch
    assert forsaken.wait() == 134
    assert forsaken.events("peer_lost")[0]["peer"] == "chief-0"
