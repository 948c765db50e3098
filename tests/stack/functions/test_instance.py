"""A function's process runs as the platform runs it, is kept running, and its output is logged."""

import contextlib
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.stack.waiting import wait_until
from trainstack.functions.instance import Instance, StartFailedError

from .hosted import DEADLINE_S, SOURCES, Entries, answered, event, hosted, start_process

ROOT = Path(__file__).parents[3]
SHARED = {"GOOGLE_CLOUD_PROJECT": "p1", "TRAINMASTER_REGION": "us-central1"}

Run = Callable[..., AbstractContextManager[Instance]]


@pytest.fixture
def entries() -> Entries:
    return Entries()


@pytest.fixture
def run(tmp_path: Path, entries: Entries) -> Run:
    """Runs one function of a source directory while the block runs."""

    @contextlib.contextmanager
    def running(
        entry_point: str, *, source: str | Path = "loud", timeout_s: int = 30, **more: str
    ) -> Iterator[Instance]:
        with hosted(
            entry_point,
            source=SOURCES / source,
            state=tmp_path,
            environment={**SHARED, **more},
            entries=entries,
            timeout_s=timeout_s,
        ) as instances:
            yield start_process(instances[entry_point.replace("_", "-")])

    return running


def _family(pid: int) -> list[psutil.Process]:
    """The master and its workers; gunicorn listens a moment before it forks the first."""
    master = psutil.Process(pid)
    wait_until(lambda: bool(master.children()), "gunicorn has its worker")
    return [master, *master.children(recursive=True)]


def _is_over(process: psutil.Process) -> bool:
    # The first thread may be a zombie while others still hold the sockets.
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1)
    except psutil.NoSuchProcess:
        return True


def test_a_function_has_the_platforms_environment_and_log_and_leaves_no_process(
    run: Run, entries: Entries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of this shell's is in its environment."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json")
    with run("tell") as instance:
        assert instance.post(*event("e-7", n=1)) == 200
        wait_until(lambda: bool(entries.of("stderr")) and len(entries.of("stdout")) == 2, "all lines")
        port = instance.url.rpartition(":")[2]
        assert instance.pid is not None
        family = _family(instance.pid)
    assert not [each for each in family if psutil.pid_exists(each.pid)]
    (line, *_) = entries.of("stdout")
    assert line["severity"] == "NOTICE"
    assert line["jsonPayload"]["data"] == {"n": 1}
    environment = line["jsonPayload"]["environment"]
    assert "GOOGLE_APPLICATION_CREDENTIALS" not in environment
    expected = {
        **SHARED,
        "TRAINMASTER_FUNCTION_TIMEOUT_S": "30",
        "K_SERVICE": "tell",
        "K_CONFIGURATION": "tell",
        "FUNCTION_TARGET": "tell",
        "FUNCTION_SIGNATURE_TYPE": "cloudevent",
        "PORT": port,
        "HOST": "127.0.0.1",
    }
    assert {name: environment.get(name) for name in expected} == expected
    assert environment["HOME"] != str(Path.home())
    text = (tmp_path / "logs" / "tell.log").read_text()
    assert "plain out" in text
    assert "plain err" in text
    (error,) = entries.of("stderr")
    assert error["textPayload"] == "plain err"
    assert error["resource"] == {
        "type": "cloud_run_revision",
        "labels": {
            "project_id": "p1",
            "location": "us-central1",
            "service_name": "tell",
            "configuration_name": "tell",
            "revision_name": "tell-00001-loc",
        },
    }
    (request,) = entries.of("requests")
    assert (request["httpRequest"]["status"], request["labels"]["ce-id"]) == (200, "e-7")


def test_a_function_has_a_process_from_its_first_event_on(tmp_path: Path) -> None:
    with hosted("tell", "fail", source=SOURCES / "loud", state=tmp_path, environment=SHARED) as instances:
        assert [each.pid for each in instances.values()] == [None, None]
        assert instances["tell"].post(*event()) == 200
        assert instances["tell"].pid is not None
        assert instances["fail"].pid is None


def test_a_function_that_raises_answers_500_and_keeps_running(run: Run, entries: Entries) -> None:
    with run("fail") as instance:
        pid = instance.pid
        assert [instance.post(*event(str(number))) for number in range(3)] == [500, 500, 500]
        assert instance.pid == pid
        wait_until(lambda: "no luck with 2" in str(entries.kept), "the traceback")
    assert {entry["severity"] for entry in entries.of("requests")} == {"ERROR"}


@pytest.mark.slow
def test_a_function_that_takes_longer_than_its_timeout_is_answered_for_with_504(run: Run) -> None:
    with run("linger", timeout_s=1) as instance:
        assert instance.post(*event(sleep_s=3)) == 504
        wait_until(lambda: instance.post(*event(sleep_s=0)) == 200, "an answer in time")


def test_a_process_that_dies_is_answered_for_with_502_and_replaced(run: Run, entries: Entries) -> None:
    with run("end") as instance:
        first = instance.pid
        assert instance.post(*event()) == 502
        wait_until(lambda: instance.pid not in (None, first), "a new process")
        second = instance.pid
        assert answered(instance, *event()) == 502  # it was given the event, and died of it too
        wait_until(lambda: instance.pid not in (None, second), "a third process")
    assert sum("ended with status -9" in entry["textPayload"] for entry in entries.of("varlog%2Fsystem")) == 2


def test_a_request_that_comes_between_two_processes_waits_for_the_next(run: Run) -> None:
    with run("tell") as instance:
        before = instance.pid
        assert before is not None
        everyone = _family(before)
        for process in everyone:
            with contextlib.suppress(psutil.NoSuchProcess):  # the guard ends those whose master is gone
                process.kill()
        # Until the last of them is gone, the port accepts connections that no process answers.
        wait_until(lambda: all(_is_over(process) for process in everyone), "the end of all processes")
        assert answered(instance, *event()) == 200
        assert instance.pid != before


@pytest.mark.parametrize(
    ("entry_point", "source", "words"),
    [
        ("tell", "broken", "Function tell .*a dependency is not installed"),
        ("no_such_function", "loud", "no_such_function"),
    ],
    ids=["fails to import", "missing entry point"],
)
def test_a_function_that_cannot_be_loaded_fails_the_start_with_the_reason(
    run: Run, entry_point: str, source: str, words: str
) -> None:
    with pytest.raises(StartFailedError, match=f"(?s){words}"), run(entry_point, source=source):
        pass


def test_the_staged_copy_runs_and_not_a_trainmaster_that_is_installed(
    run: Run, entries: Entries, tmp_path: Path
) -> None:
    shutil.copytree(SOURCES / "loud", tmp_path / "staged")
    settings = tmp_path / "staged" / "trainmaster" / "orchestrator" / "settings.py"
    settings.parent.mkdir(parents=True)
    for package in settings.parents[:2]:
        (package / "__init__.py").touch()
    settings.write_text("WORD = 'as staged'\n")
    with run("show_settings", source=tmp_path / "staged", PYTHONPATH=str(ROOT)) as instance:
        assert instance.post(*event()) == 200
        wait_until(lambda: "as staged" in str(entries.of("stdout")), "the staged settings")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        # Waits until the function has given up on as many clients as it has threads, and on one more.
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
            marks=pytest.mark.slow(seconds=32),
        ),
    ],
    ids=["nothing", "half of the body"],
)
def test_clients_that_never_finish_a_request_delay_no_event_and_are_cut_off(run: Run, sent: bytes) -> None:
    with run("tell") as instance, contextlib.ExitStack() as open_sockets:
        address = ("127.0.0.1", urlsplit(instance.url).port)
        stuck = [open_sockets.enter_context(socket.create_connection(address)) for _ in range(5)]
        for each in stuck:
            each.sendall(sent)
            each.settimeout(DEADLINE_S)
        assert instance.post(*event()) == 200
        if sent:
            # The connection is closed, maybe after an answer that says so.
            assert all(_ends(each) for each in stuck)


def _ends(connection: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(4096):
            pass
    return True
