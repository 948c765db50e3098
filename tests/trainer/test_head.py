"""--train=head: features are computed once, and only what comes after them is trained."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.conftest import ENDS_WITHIN_S, ROOT
from tests.trainer.exports import check_export
from tests.trainer.survival import (
    Small,
    has_reached,
    has_saved,
    hold_upload,
    output_tails,
    release_upload,
    statuses,
    weights_of,
)
from tests.trainer.warm import WarmProcess
from trainer.command_line import command_from
from trainer.faults import Unusable
from trainer.survive import Settings, Workload, attempt
from trainmaster.local.ports import free_ports

PARAMETER_SERVERS = {
    "cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]},
    "task": {"type": "chief", "index": 0},
}


def refused(*arguments: str, environment: dict[str, str] | None = None) -> Sequence[str]:
    try:
        command = command_from(arguments)
        attempt(command.workload, command.settings, environment or {}, name=command.name, flags=command.flags)
    except Unusable as refusal:
        return refusal.faults
    return ()


def test_a_value_that_is_none_is_refused() -> None:
    assert refused("--train=heads") == ("--train=heads: expected one of all, head; found 'heads'.",)


def test_a_workload_without_a_backbone_refuses_the_flag() -> None:
    assert refused("--train=head", "--workload=horses_or_humans") == (
        (
            "--train=head: --workload=horses_or_humans does not say where its head begins. Remove the flag, or name the "
            "layer before the head as `head` of its Workload."
        ),
    )


def test_a_program_that_names_no_head_refuses_the_setting() -> None:
    program = Workload(build=lambda _: None, data=lambda _: None)  # type: ignore[arg-type,return-value]  # not called
    with pytest.raises(
        Unusable, match=r"this program does not say where its head begins.*`head` of survive.run"
    ):
        attempt(program, Settings(train="head"), {})


def test_parameter_servers_refuse_the_flag() -> None:
    assert refused("--train=head", environment={"TF_CONFIG": json.dumps(PARAMETER_SERVERS)}) == (
        (
            "--train=head: workers of parameter servers do not share features. Use a cluster without parameter servers, or "
            "--train=all."
        ),
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What tests/trainer/head_cases.py prints."""
    folder = tmp_path_factory.mktemp("head")
    out, err = folder / "out", folder / "err"
    process = WarmProcess(
        "tests.trainer.head_cases",
        "",
        str(folder / "jobs"),
        cwd=ROOT,
        environment=os.environ,
        out=out,
        err=err,
    )
    assert process.wait(ENDS_WITHIN_S) == 0, err.read_text()[-3000:]
    return json.loads(out.read_text().splitlines()[-1])


CASES = [f"{keras}, {devices}" for keras in "23" for devices in "12"]
"""Versions of Keras and numbers of devices."""


@pytest.mark.slow(seconds=100)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_the_features_are_what_the_backbone_computes_when_the_model_is_served(found: Any, case: str) -> None:
    trained = found["trained"][case]
    assert trained["features_vary"] > 1e-3
    assert trained["features"] < 1e-5
    assert trained["labels"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_an_evaluation_of_the_head_is_one_of_the_whole_model(found: Any, case: str) -> None:
    assert found["trained"][case]["loss"] < 1e-5
    assert found["trained"][case]["accuracy"] < 1e-6


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_only_the_head_changes(found: Any, case: str) -> None:
    assert found["trained"][case]["changed"] == ["hidden", "last"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", ["1", "2", "4"])
def test_each_worker_decodes_a_share_of_the_examples_once(found: Any, workers: str) -> None:
    shares = found["decoded"][workers]
    assert [len(share["decoded"]) for share in shares] == [24 // int(workers)] * int(workers), (
        "three steps of eight"
    )
    every = Counter(name for share in shares for name in share["decoded"])
    assert len(every) == 22
    assert sum(every.values()) == 24
    local = 4 // int(workers)
    steps = [
        [
            label
            for share in shares
            for batch in share["labels"][step * local : (step + 1) * local]
            for label in batch
        ]
        for step in range(3)
    ]
    whole = [
        [label for batch in found["decoded"]["1"][0]["labels"][step * 4 : (step + 1) * 4] for label in batch]
        for step in range(3)
    ]
    assert steps == whole, "in the order of the examples"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("case", "why"),
    [
        (
            "unknown",
            "--train=head: the workload says that the head begins after the layer 'feature', and the model has none",
        ),
        ("nothing", "--train=head: nothing is trained after the layer 'features'."),
        ("subclassed", "--train=head: the model cannot be cut after the layer 'features'"),
        (
            "large",
            "--train=head: the features of 31 examples, 24 bytes each, take 0 MiB in every replica; the limit is 0 MiB.",
        ),
    ],
)
def test_a_model_or_data_that_cannot_be_used_is_refused(found: Any, case: str, why: str) -> None:
    assert found["refused"][case].startswith(why)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Iterator[Small]:
    arguments = ("--train=head", "--epochs=2", "--batch_size=2", "--checkpoint_steps=4")
    made = Small(root=tmp_path_factory.mktemp("heads"), data_dir=data_dir, arguments=arguments)
    try:
        yield made
    finally:
        made.reap()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_run_that_loses_its_worker_continues_to_the_same_model(small: Small) -> None:
    undisturbed = small.cluster("undisturbed")
    assert statuses(undisturbed) == [0, 0], output_tails(undisturbed)
    computed = [event["examples"] for event in undisturbed[0].events("features_computed")]
    assert computed == [39, 9]

    pipe = hold_upload(
        small.run_dir("killed"), 2
    )  # the chief cannot end before the kill: it waits to save the epoch
    chief, worker = small.cluster("killed")
    chief.wait_until(has_reached(1, 9))
    worker.process.kill()
    release_upload(pipe)
    assert statuses([chief]) == [134], output_tails([chief])
    again = small.cluster("killed")
    assert statuses(again) == [0, 0], output_tails(again)
    (started,) = again[0].events("train_started")
    assert (started["initial_epoch"], started["initial_step"]) > (0, 0)
    assert weights_of(again) == weights_of(undisturbed)
    check_export(small.run_dir("killed") / "model")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_evaluator_computes_the_heads_metrics_from_its_checkpoints(small: Small) -> None:
    hosts = [f"127.0.0.1:{port}" for port in free_ports(2)]
    members = dict(zip(("chief", "evaluator"), ([host] for host in hosts), strict=True))
    configs = [{"cluster": members, "task": {"type": role, "index": 0}} for role in members]
    chief, evaluator = small.cluster("evaluated", configs=configs)
    assert statuses([chief, evaluator]) == [0, 0], output_tails([chief, evaluator])
    last, finished = evaluator.events("evaluated")[-1], chief.events("epoch_finished")[-1]
    assert (last["epoch"], last["step"]) == (finished["epoch"], 0)
    for name, value in last["metrics"].items():
        assert value == pytest.approx(finished["metrics"][f"val_{name}"], abs=1e-5)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_checkpoint_of_the_head_does_not_continue_as_a_training_of_all_layers(small: Small) -> None:
    first = small.start("switched", "--epochs=40")
    first.wait_until(has_saved(1, 0))
    first.process.kill()
    first.process.wait(ENDS_WITHIN_S)
    second = small.start("switched", "--epochs=40", "--train=all")
    assert second.wait() == 2
    assert "was trained with --train=head, and this run has --train=all" in second.err.read_text()
