"""Two workers learn as one process with the same global batch does: their loss curves, within the noise of the seed."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from statistics import mean

import pytest

from tests.trainer.conftest import Replica, write_demo_dataset
from tests.trainer.survival import Small, said_in, statuses

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

GLOBAL_BATCH = 32
EPOCHS = 5


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    data_dir: Path = tmp_path_factory.mktemp("tfds-curves")
    write_demo_dataset(data_dir, "--examples=200", "--image_size=32")
    made = Small(root=tmp_path_factory.mktemp("curves"), data_dir=data_dir, arguments=(f"--epochs={EPOCHS}",))
    try:
        yield made
    finally:
        made.reap()


def curve(replica: Replica, name: str = "loss") -> list[float]:
    """The running mean of the training loss at the end of each epoch."""
    return [event["metrics"][name] for event in replica.events("epoch_finished")]


def distance(one: list[float], other: list[float]) -> float:
    """The mean over the epochs of the difference between two curves."""
    return mean(abs(a - b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("norm", "seeds", "seeds_together"), [("none", (1, 2), (1,)), ("batch", (1, 2, 3), (1, 2))]
)
def test_two_workers_reach_the_loss_curve_of_one_process_within_the_noise_of_the_seed(
    small: Small, norm: str, seeds: tuple[int, ...], seeds_together: tuple[int, ...]
) -> None:
    alone, together = dict[int, list[float]](), dict[int, list[float]]()
    for seed in seeds:
        flags = f"--norm={norm}", f"--seed={seed}"
        replicas = [small.start(f"alone-{norm}-{seed}", *flags, f"--batch_size={GLOBAL_BATCH}")]
        if seed in seeds_together:
            replicas += small.cluster(f"together-{norm}-{seed}", *flags, f"--batch_size={GLOBAL_BATCH // 2}")
        assert set(statuses(replicas)) == {0}, said_in(replicas)
        alone[seed] = curve(replicas[0])
        if seed in seeds_together:
            together[seed] = curve(replicas[1])
            assert replicas[1].events("train_started")[0]["global_batch_size"] == GLOBAL_BATCH
    difference = mean(distance(together[seed], alone[seed]) for seed in seeds_together)
    noise = mean(distance(alone[one], alone[other]) for one, other in combinations(seeds, 2))
    print(f"\nnormalization: {norm}; loss after each of {EPOCHS} epochs, global batch {GLOBAL_BATCH}")  # noqa: T201
    for seed in seeds:
        shown = " ".join(f"{loss:.4f}" for loss in alone[seed])
        print(f"  seed {seed}: one process {shown}")  # noqa: T201 - the numbers are the claim
        if seed in seeds_together:
            print(f"          two workers {' '.join(f'{loss:.4f}' for loss in together[seed])}")  # noqa: T201
    print(f"  two workers against one process {difference:.2e}, seed against seed {noise:.2e}")  # noqa: T201
    for seed in seeds_together:
        assert alone[seed][-1] < alone[seed][0], "it learns"
        assert len(together[seed]) == EPOCHS
    assert noise > 1e-3, "different seeds must differ, or the comparison says nothing"
    assert difference < noise
    if norm == "none":
        # The same sums in another order: the two differ by rounding alone.
        assert difference < noise / 100
