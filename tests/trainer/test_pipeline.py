"""Which examples the replicas of a run train on and evaluate, in which order, and how many of them each decodes."""

import json
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.conftest import run_to_end

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

AT_ONCE = 16  # more images than two threads decode at the same time
EXAMPLES, EVALUATED = 39, 9
GLOBAL_BATCH, STEPS, TAKEN = 8, 4, 10
SOURCES = ("kept", "buffered", "cached")
"""Where examples come from: encoded images in memory, a buffer filled from files, decoded images in memory."""


@pytest.fixture(scope="module")
def found(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What tests/trainer/batches.py prints of the small data set: images by name, for 4 replicas of 2 examples."""
    printed = run_to_end("tests.trainer.batches", str(data_dir), folder=tmp_path_factory.mktemp("batches"))
    batches: dict[str, Any] = json.loads(printed)
    return batches


def global_batches(steps_of_workers: list[list[list[str]]]) -> list[list[str]]:
    """Each step's examples of all workers."""
    return [flat(parts) for parts in zip(*steps_of_workers, strict=True)]


def flat(lists: Iterable[list[str]]) -> list[str]:
    return [each for some in lists for each in some]


def test_a_global_batch_has_the_same_examples_with_any_number_of_workers(found: dict[str, Any]) -> None:
    for source in SOURCES:
        one, *others = (global_batches(orders["steps"]) for orders in found[source].values())
        assert len(one) == TAKEN
        assert others == [one]


@pytest.mark.parametrize("source", SOURCES)
def test_no_example_is_trained_on_twice_in_an_epoch_and_epochs_differ(
    found: dict[str, Any], source: str
) -> None:
    batches = global_batches(found[source]["2"]["steps"])
    epochs = [flat(batches[first : first + STEPS]) for first in range(0, TAKEN, STEPS)]
    for epoch in epochs:
        assert len(set(epoch)) == len(epoch)
    assert [len(epoch) for epoch in epochs] == [GLOBAL_BATCH * STEPS] * 2 + [GLOBAL_BATCH * (TAKEN % STEPS)]
    assert all(one[: len(other)] != other for one, other in pairwise(epochs))


@pytest.mark.parametrize("source", SOURCES)
def test_a_run_that_continues_within_an_epoch_sees_what_it_would_have_seen(
    found: dict[str, Any], source: str
) -> None:
    undisturbed, continued = (found[source]["2"][name] for name in ("steps", "continued"))
    assert continued == [steps[STEPS + 3 :] for steps in undisturbed]


@pytest.mark.parametrize("source", ["kept", "buffered"])
def test_a_worker_decodes_only_the_examples_that_it_trains_on(found: dict[str, Any], source: str) -> None:
    """And those of the batches that it makes ahead, which are its own, too."""
    for steps, decoded in zip(found[source]["2"]["due"], found[source]["2"]["decoded"], strict=True):
        due = flat(steps)
        used = GLOBAL_BATCH * TAKEN // 2
        assert used <= len(decoded) <= len(due)
        assert Counter(due[:used]) <= Counter(decoded)
        # Of the last ones, several are decoded at once, so one may be missing that precedes another.
        assert Counter(decoded) <= Counter(due[: len(decoded) + AT_ONCE])


def test_with_cache_a_worker_decodes_every_example_once_whatever_the_number_of_epochs(
    found: dict[str, Any],
) -> None:
    for decoded in found["cached"]["2"]["decoded"]:
        assert len(decoded) == len(set(decoded)) == EXAMPLES


def test_the_cache_takes_all_of_cassava_and_refuses_more_than_its_limit(found: dict[str, Any]) -> None:
    assert found["refusals"] == {
        "5656": None,
        "8000": "--cache: 8000 decoded examples of 270008 bytes take 2059 MiB in every replica; the limit is 2048 MiB. "
        "Remove --cache.",
    }


@pytest.mark.parametrize("workers", [1, 4])
def test_an_evaluation_decodes_every_example_in_one_worker_and_leaves_no_replica_without(
    found: dict[str, Any], workers: int
) -> None:
    evaluated = found["evaluated"][str(workers)]
    for batches, decoded in zip(evaluated["batches"], evaluated["decoded"], strict=True):
        assert Counter(decoded) == Counter(flat(batches))
        assert len(batches) == 2 * 4 // workers, "two steps of four replicas"
        assert all(batches)
    every = [name for batches in evaluated["batches"] for name in flat(batches)]
    assert len(every) == len(set(every)) == EVALUATED


def test_serving_gives_the_model_the_numbers_that_training_gave_it_with_a_cache_and_without(
    found: dict[str, Any],
) -> None:
    assert found["served_as_trained"]


def test_two_devices_of_one_machine_get_parts_of_the_same_global_batch(found: dict[str, Any]) -> None:
    steps = found["mirrored"]["steps"]
    assert [[len(part) for part in parts] for parts in steps] == [[2, 2]] * 3
    # A global batch of two replicas is half of one of four.
    assert [name for parts in steps for part in parts for name in part] == flat(
        global_batches(found["kept"]["1"]["steps"])
    )[:12]
    assert [part for sizes in found["mirrored"]["sizes"] for part in sizes] == [1, 2, 1, 2, 1, 2]
