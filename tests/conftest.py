"""What holds for all tests: how Hypothesis draws, and who comes first."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from trainmaster.deploy.stage import stage

# Hypothesis asserts no timings: how fast a machine draws examples is no property of the code.
settings.register_profile("trainmaster", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trainmaster")


@pytest.fixture(scope="session")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The functions' source as it is deployed."""
    destination = tmp_path_factory.mktemp("stage") / "functions"
    stage(destination)
    return destination


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests first, one of each folder in turn.

    So no worker is left alone with a long file at the end, and those that train, and want the processor, run beside
    those that wait for leases and restarts.
    """
    slow = dict.fromkeys(item.path for item in items if item.get_closest_marker("slow"))
    of_folder: Counter[Path] = Counter()
    turn: dict[Path, int] = {}
    for path in slow:
        turn[path] = of_folder[path.parent]
        of_folder[path.parent] += 1
    items.sort(key=lambda item: (item.path not in turn, turn.get(item.path, 0)))
