"""Rules for all tests: how Hypothesis draws, who comes first, and where leftovers are found."""

import gc
import signal
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer  # type: ignore[import-untyped]

from tests.progress import Progress
from tests.scheduling import StackScheduling
from tests.sockets import add_origins, record_origins
from trainmaster.deploy.stage import stage
from trainmaster.partial_import import VERTEX_CLIENT, import_parts_of
from trainstack.sandbox.probe import obstacle

import_parts_of(
    *VERTEX_CLIENT
)  # each worker imports every test module, and these need only one of the many clients

# Hypothesis asserts no timings: the code does not determine how fast a machine draws examples.
settings.register_profile("trainmaster", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trainmaster")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--by-part", action="store_true", help="report the progress of each folder's tests")


@pytest.hookimpl(trylast=True)  # after the terminal reporter is registered
def pytest_configure(config: pytest.Config) -> None:
    record_origins()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell starts what it puts in the background. Commands that tests interrupt would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and config.getoption("--by-part"):
        config.pluginmanager.register(Progress(reporter))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> StackScheduling | None:
    return StackScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session", autouse=True)
def temporary_files_do_not_pile_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What killed programs leave behind, as TensorFlow's generated modules, goes with pytest's own folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("t")))
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(scope="module", autouse=True)
def resources_are_closed() -> Iterator[None]:
    """An unclosed resource fails the last test of its module, not a later test that happens to collect it.

    Pytest turns the ResourceWarning of a collected object into an error of the test that runs. What is left after a
    collection is frozen, as looking at everything imported again would take a fraction of a second.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    add_origins(report)
    return report


@pytest.fixture(scope="session", autouse=True)
def _settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Stacks of tests register in a separate folder, not in that of the user, and are isolated where that is possible."""
    folder = tmp_path_factory.mktemp("settings")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TRAINMASTER_CONFIG", str(folder))
        if obstacle():  # tests of isolation itself say that they are skipped
            patched.setenv("TRAINMASTER_ISOLATION", "none")
        yield


@pytest.fixture(scope="session")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The functions' source as it is deployed."""
    destination = tmp_path_factory.mktemp("stage") / "functions"
    stage(destination)
    return destination


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection during imports, which leave little garbage; each worker imports every module."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order files with slow tests first: by their stated duration or the number of these tests, then one of each folder in turn.

    So no worker is left alone with a long file at the end, and tests that train, which need the processor, run beside
    those that wait for leases and restarts. Files that share one stack follow each other: it ends with the last of them.
    """
    marks = [(item.path, mark) for item in items if (mark := item.get_closest_marker("slow"))]
    sharing = {item.path for item in items if shares_a_stack(item)}
    of_folder: Counter[Path] = Counter()
    turn: dict[Path, tuple[float, int]] = {}
    for path in dict.fromkeys(path for path, _ in marks):
        stated = [mark.kwargs.get("seconds", 0) for owner, mark in marks if owner == path]
        turn[path] = (-max(*stated, len(stated)), 0 if path in sharing else of_folder[path.parent])
        of_folder[path.parent] += path not in sharing
    items.sort(key=lambda item: (item.path not in turn, turn.get(item.path, (0, 0))))


def shares_a_stack(item: pytest.Item) -> bool:
    """Whether the test runs on the stack of tests/e2e or tests/e2e/verbs; a file may define others of these names."""
    return isinstance(item, pytest.Function) and any(
        (fixture.argname, fixture.scope) in {("project", "package"), ("stack", "package")}
        for found in item._fixtureinfo.name2fixturedefs.values()
        for fixture in found[-1:]
    )
