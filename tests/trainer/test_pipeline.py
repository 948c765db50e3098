"""Which examples the replicas of a run train on and evaluate, in which order, and how many of them each decodes."""

from collections import Counter
from itertools import chain, pairwise
from typing import Any

import pytest

from tests.trainer.conftest import cases_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

AT_ONCE = 16  # more examples than two threads decode at the same time
EXAMPLES, EVALUATED = 39, 9
GLOBAL_BATCH, STEPS, TAKEN = 8, 4, 10
WORKERS = ("1", "2")
PADDED = ("padded, buffered", "padded, ragged")
SOURCES = ("kept", "buffered", "cached", *PADDED)
"""Where examples come from: loaded ones in memory, a buffer filled from files, decoded ones in memory."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What tests/trainer/batches.py finds of numbers, for 4 replicas of 2 examples."""
    return cases_of("tests.trainer.batches", tmp_path_factory)


def numbers_of(batches: list[Any]) -> list[int]:
    """Of all examples of these batches, the number that each is or begins with."""
    rows = chain.from_iterable(x for x, _ in batches)
    return [row[0] if isinstance(row, list) else row for row in rows]


def steps_of(workers: list[Any]) -> list[list[int]]:
    """Each step's examples of all workers."""
    part = GLOBAL_BATCH // len(workers)
    numbers = [numbers_of(batches) for batches in workers]
    return [
        [number for own in numbers for number in own[first : first + part]]
        for first in range(0, len(numbers[0]), part)
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_a_global_batch_has_the_same_examples_with_any_number_of_workers_and_after_a_restart(
    found: dict[str, Any], source: str
) -> None:
    one, *others = (steps_of(found[source][workers]["steps"]) for workers in WORKERS)
    assert len(one) == TAKEN
    assert others == [one]
    for workers in WORKERS:
        assert steps_of(found[source][workers]["continued"]) == one[STEPS + 3 :]


@pytest.mark.parametrize("source", SOURCES)
def test_no_example_is_trained_on_twice_in_an_epoch_and_epochs_differ(
    found: dict[str, Any], source: str
) -> None:
    steps = steps_of(found[source]["2"]["steps"])
    epochs = [list(chain(*steps[first : first + STEPS])) for first in range(0, TAKEN, STEPS)]
    for epoch in epochs:
        assert len(set(epoch)) == len(epoch)
    assert [len(epoch) for epoch in epochs] == [GLOBAL_BATCH * STEPS] * 2 + [GLOBAL_BATCH * (TAKEN % STEPS)]
    assert all(one[: len(other)] != other for one, other in pairwise(epochs))


@pytest.mark.parametrize("source", ["kept", "buffered"])
def test_a_worker_decodes_only_the_examples_that_it_trains_on(found: dict[str, Any], source: str) -> None:
    """And those of the batches that it makes ahead, which are its own, too."""
    for batches, decoded in zip(found[source]["2"]["due"], found[source]["2"]["decoded"], strict=True):
        due = numbers_of(batches)
        used = GLOBAL_BATCH * TAKEN // 2
        assert used <= len(decoded) <= len(due)
        assert Counter(due[:used]) <= Counter(decoded)
        # Of the last ones, several are decoded at once, so one may be missing that precedes another.
        assert Counter(decoded) <= Counter(due[: len(decoded) + AT_ONCE])


def test_with_cache_a_worker_decodes_every_example_once_whatever_the_number_of_epochs(
    found: dict[str, Any],
) -> None:
    for decoded in found["cached"]["2"]["decoded"]:
        assert sorted(decoded) == list(range(1, EXAMPLES + 1))


def test_the_cache_takes_all_of_cassava_and_refuses_more_than_its_limit(found: dict[str, Any]) -> None:
    assert found["refusals"] == {
        "5656": None,
        "8000": "--cache: 8000 decoded examples of 270008 bytes take 2059 MiB in every replica; the limit is 2048 MiB. "
        "Remove --cache.",
    }


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("workers", WORKERS)
def test_an_evaluation_decodes_every_example_in_one_worker_and_leaves_no_replica_without(
    found: dict[str, Any], source: str, workers: str
) -> None:
    run = found[source][workers]
    for batches, decoded in zip(run["evaluated"], run["decoded to evaluate"], strict=True):
        assert source in PADDED or sorted(decoded) == sorted(numbers_of(batches))
        assert len(batches) == 2 * 4 // int(workers), "two steps of four replicas"
        assert all(x for x, _ in batches)
    assert sorted(numbers_of(list(chain(*run["evaluated"])))) == list(range(1, EVALUATED + 1))


@pytest.mark.parametrize("source", PADDED)
@pytest.mark.parametrize("workers", WORKERS)
def test_examples_of_different_lengths_are_padded_to_the_longest_of_their_batch(
    found: dict[str, Any], source: str, workers: str
) -> None:
    run = found[source][workers]
    for x, y in chain(*run["steps"], *run["evaluated"]):
        lengths = [1 + row[0] % 7 for row in x]
        for row, label, length in zip(x, y, lengths, strict=True):
            assert row == [row[0]] * length + [0] * (max(lengths) - length)
            assert label == [row[0]] * length + [-1] * (max(lengths) - length)


def test_serving_gives_the_model_the_numbers_that_training_gave_it_with_a_cache_and_without(
    found: dict[str, Any],
) -> None:
    assert found["served as trained"] == [True, True]


def test_two_devices_of_one_machine_get_parts_of_the_same_global_batch(found: dict[str, Any]) -> None:
    steps, evaluated = found["mirrored"]["steps"], found["mirrored"]["evaluated"]
    assert [[len(part) for part in parts] for parts in steps] == [[2, 2]] * 3
    # A global batch of two replicas is half of one of four.
    assert list(chain(*chain(*steps))) == list(chain(*steps_of(found["kept"]["1"]["steps"])))[:12]
    assert [len(part) for parts in evaluated for part in parts] == [1, 2, 1, 2, 1, 2]
