"""Functions are forked from one process that has loaded their modules, and are as separate as if each had loaded them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.stack.waiting import wait_until
from trainstack.functions.instance import Instance, StartFailedError
from trainstack.process.fork_server import ENVIRONMENT_BYTES

from .hosted import SOURCES, Entries, answered, event, hosted, start_process


@pytest.fixture
def entries() -> Entries:
    return Entries()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the source, whose main.py imports a module beside it."""
    folder = tmp_path / "source"
    shutil.copytree(SOURCES / "loud", folder)
    settings = folder / "trainmaster" / "orchestrator" / "settings.py"
    settings.parent.mkdir(parents=True)
    settings.write_text("WORD = 'as it was'\n")
    main = folder / "main.py"
    main.write_text(f"import trainmaster.orchestrator.settings\n{main.read_text()}")
    return folder


@pytest.fixture
def both(tmp_path: Path, source: Path, entries: Entries) -> Iterator[dict[str, Instance]]:
    identities = {name: {"TOKEN": f"token of {name}"} for name in ("tell", "show-settings")}
    with hosted(
        "tell", "show_settings", source=source, state=tmp_path, environment={"SHARED": "1"},
        identities=identities, entries=entries,
    ) as instances:  # fmt: skip
        yield {name: start_process(instance) for name, instance in instances.items()}


def process_of(instance: Instance) -> psutil.Process:
    assert instance.pid is not None
    return psutil.Process(instance.pid)


def server_of(instance: Instance) -> psutil.Process:
    server = process_of(instance).parent()
    assert server is not None
    return server


def test_each_process_has_its_functions_variables_and_no_other_functions(both: dict[str, Instance]) -> None:
    shown = {name: process_of(instance).environ() for name, instance in both.items()}
    assert {name: each["K_SERVICE"] for name, each in shown.items()} == {name: name for name in both}
    assert {name: each["TOKEN"] for name, each in shown.items()} == {
        name: f"token of {name}" for name in both
    }
    assert {each["SHARED"] for each in shown.values()} == {"1"}
    assert len({each["HOME"] for each in shown.values()}) == 2
    server = server_of(both["tell"]).environ()
    assert not {"K_SERVICE", "TOKEN"} & server.keys()


@pytest.mark.slow
def test_functions_whose_server_is_killed_are_replaced(both: dict[str, Instance]) -> None:
    old = {name: process_of(instance) for name, instance in both.items()}
    server_of(both["tell"]).kill()
    for name, instance in both.items():
        wait_until(lambda i=instance, n=name: i.pid not in (None, old[n].pid), f"a new process of {name}")  # type: ignore[misc]
        assert answered(instance, *event()) == 200
    wait_until(lambda: not any(each.is_running() for each in old.values()), "the end of the old processes")


def test_a_function_that_restarts_runs_the_source_as_it_is_then(
    both: dict[str, Instance], source: Path, entries: Entries
) -> None:
    edited, other = both["show-settings"], both["tell"]
    before, untouched = edited.pid, other.pid
    (source / "trainmaster" / "orchestrator" / "settings.py").write_text("WORD = 'as it was edited'\n")
    edited.kill()
    wait_until(lambda: edited.pid not in (None, before), "a new process")
    assert answered(edited, *event()) == 200
    wait_until(lambda: "as it was edited" in str(entries.of("stdout")), "the edited word")
    assert other.pid == untouched
    other.kill()
    wait_until(
        lambda: other.pid not in (None, untouched), "a new process of the function of the first server"
    )


def test_too_large_an_environment_fails_the_start_with_both_sizes(tmp_path: Path) -> None:
    with (
        pytest.raises(StartFailedError, match=rf"Function tell .* bytes; at most {ENVIRONMENT_BYTES:,} are"),
        hosted(
            "tell", source=SOURCES / "loud", state=tmp_path, environment={"LARGE": "x" * ENVIRONMENT_BYTES}
        ),
    ):
        pass


def test_a_server_that_cannot_start_fails_the_start_with_its_output(tmp_path: Path) -> None:
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "flask.py").write_text("raise ImportError('not the real flask')\n")
    with (
        pytest.raises(StartFailedError, match=r"(?s)Function tell .*not the real flask"),
        hosted("tell", source=SOURCES / "loud", state=tmp_path, environment={"PYTHONPATH": str(shadow)}),
    ):
        pass
