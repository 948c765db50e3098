"""`trainmaster web` as a process: what it prints, slow and greedy clients, and its end."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.client.served import BUCKETS, ROOT, served_context
from tests.command import trainmaster
from tests.e2e.project import eventually
from tests.ready_stack import announce
from tests.web.consoles import console_over
from trainmaster.client.context import Context, NoContext

DEADLINE_S = 60
STRANGE_PATHS = (
    "/static/../app.py",
    "/static/..%2fapp.py",
    "/static/%2e%2e/app.py",
    "/static/..%5capp.py",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "/static/%00",
    f"/static/{'a' * 5000}",
    "/static/",
)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Host and port of a console, which must end by itself after SIGTERM although a page is watched."""
    folder = tmp_path_factory.mktemp("web")
    output = folder / "output"
    with served_context(folder), started(folder, output) as process:
        said = eventually(output.read_text, "the console's address")
        address = urlsplit(said.removeprefix("The console: ").strip())
        assert (address.scheme, address.hostname, address.path) == ("http", "127.0.0.1", "/"), said
        where = (str(address.hostname), int(address.port or 0))
        yield where
        with watching(where):
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0
        assert "Traceback" not in output.read_text()


@contextlib.contextmanager
def started(folder: Path, output: Path, *words: str, **variables: str) -> Iterator["subprocess.Popen[bytes]"]:
    context = f"local:{folder / '.trainmaster'}"
    command = [sys.executable, "-m", "trainmaster", "web", "--context", context, *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **variables}
    with (
        output.open("wb") as file,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file, stderr=file) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def watching(console: tuple[str, int]) -> Iterator[http.client.HTTPResponse]:
    """The stream of the first page, of which at least one byte has arrived."""
    with contextlib.closing(http.client.HTTPConnection(*console, timeout=DEADLINE_S)) as connection:
        connection.request("GET", "/", headers={"accept": "text/event-stream"})
        with connection.getresponse() as answer:
            assert answer.status == 200
            answer.read(1)
            yield answer


def get(console: tuple[str, int], path: str) -> tuple[int, str]:
    """The status and the text. The path is sent as it is."""
    with contextlib.closing(http.client.HTTPConnection(*console, timeout=DEADLINE_S)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.mark.parametrize("path", STRANGE_PATHS)
def test_nothing_outside_the_static_folder_is_served(console: tuple[str, int], path: str) -> None:
    status, text = get(console, path)
    assert (status, "<h1>No such page</h1>" in text) == (404, True)


def test_hundreds_of_half_sent_requests_of_one_user_leave_the_console_to_others(
    console: tuple[str, int],
) -> None:
    parts = (
        b"",
        b"GET / HT",
        b"POST /rules/x/fire HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nto",
    )
    with contextlib.ExitStack() as held, watching(console) as watched:
        for part in parts * 300:
            slow = held.enter_context(socket.create_connection(console, timeout=DEADLINE_S))
            with contextlib.suppress(ConnectionError):
                slow.sendall(part)
        assert [get(console, "/runs")[0] for _ in range(5)] == [200] * 5
        assert watched.read(1)


def test_a_head_without_end_is_refused(console: tuple[str, int]) -> None:
    with socket.create_connection(console, timeout=DEADLINE_S) as greedy:
        with contextlib.suppress(ConnectionError):  # refused before all of it was sent
            greedy.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"x-a: b\r\n" * 50_000)
        with contextlib.suppress(ConnectionError):
            assert greedy.recv(100).startswith(b"HTTP/1.1 400")
    assert get(console, "/runs")[0] == 200


def test_a_page_opened_after_its_stack_has_stopped_says_so_at_once(tmp_path: Path) -> None:
    """Without trying the storage again, which its client does for two minutes."""
    with contextlib.ExitStack() as open_stack:
        stack = open_stack.enter_context(served_context(tmp_path))
        runs = [stack.clients.context]

        def choose() -> Context:
            if not runs:
                raise NoContext("No local stack is running.")
            return runs[0]

        with console_over(choose) as browser:
            assert browser.get("/runs").status_code == 200
            open_stack.close()
            runs.clear()
            page = browser.get("/models", timeout=DEADLINE_S)
            assert (page.status_code, "No local stack is running." in page.text) == (503, True)


def test_a_program_changes_things_with_the_token_that_its_user_chose(tmp_path: Path) -> None:
    token, output = "0123456789abcdef01234567", tmp_path / "output"
    chosen = {"TRAINMASTER_CONSOLE_TOKEN": token}
    with served_context(tmp_path), started(tmp_path, output, "--write", **chosen):
        said = eventually(output.read_text, "the console's address")
        url = f"{said.removeprefix('The console: ').strip()}api/v1/runs/unknown/again"
        for headers, status in (({}, 403), ({"authorization": f"Bearer {token}"}, 404)):
            assert httpx.post(url, headers=headers, json={}, timeout=DEADLINE_S).status_code == status


@pytest.mark.parametrize("token", ["short", "with a space and more characters", "x" * 201])
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused(tmp_path: Path, token: str) -> None:
    environment = {"HOME": str(tmp_path), "TRAINMASTER_CONSOLE_TOKEN": token}
    done = trainmaster("web", cwd=tmp_path, environment=environment)
    assert done.status == 2
    assert "TRAINMASTER_CONSOLE_TOKEN: expected 24 to 200 letters, digits, - and _" in done.err


def test_a_port_in_use_is_named(console: tuple[str, int], tmp_path: Path) -> None:
    (tmp_path / ".trainmaster").mkdir()
    announce(tmp_path / ".trainmaster", {
        "GOOGLE_CLOUD_PROJECT": "p", "TRAINMASTER_REGION": "r", "LOGGING_EMULATOR_HOST": f"http://{console[0]}:{console[1]}",
        **{f"TRAINMASTER_{name.upper()}_BUCKET": name for name in BUCKETS},
    })  # fmt: skip
    done = trainmaster("web", "--context", f"local:{tmp_path / '.trainmaster'}", "--port", str(console[1]),
                       cwd=tmp_path, environment={"HOME": str(tmp_path)})  # fmt: skip
    assert (done.status, done.err) == (
        2,
        f"Error: --port {console[1]}: Address already in use. Choose another or omit it.\n",
    )
