"""The stack's receiver keeps what programs post, within bounds, and nothing that a page makes a browser send."""

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from trainstack.stack import receiver
from trainstack.stack.receiver import RECEIVED, Receiver


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Receiver]:
    found = Receiver(tmp_path)
    yield found
    found.close()


def test_a_post_is_kept_whole_in_a_folder_of_the_user_alone(running: Receiver, tmp_path: Path) -> None:
    url = f"http://{running.address}/a/b"
    assert httpx.post(url, content='{"x": "é"}', headers={"X-Own": "1"}).status_code == 200
    (line,) = (tmp_path / RECEIVED).read_text().splitlines()
    came = json.loads(line)
    assert (came["path"], came["body"], came["headers"]["X-Own"]) == ("/a/b", '{"x": "é"}', "1")
    assert (tmp_path / RECEIVED).parent.stat().st_mode & 0o777 == 0o700


def test_a_failure_can_be_asked_for_by_the_path(running: Receiver, tmp_path: Path) -> None:
    url = f"http://{running.address}/chat/answer"
    assert [httpx.post(f"{url}={each}", content="x").status_code for each in ("503", "99", "1" * 9999)] == [
        503, 200, 200
    ]  # fmt: skip
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{url}=hang", content="x", timeout=0.2)
    assert len((tmp_path / RECEIVED).read_text().splitlines()) == 4


def test_a_browsers_page_and_a_large_body_are_refused(running: Receiver, tmp_path: Path) -> None:
    url = f"http://{running.address}/"
    assert httpx.post(url, content="x", headers={"Origin": "https://evil.test"}).status_code == 400
    with closing(HTTPConnection(running.address)) as connection:
        connection.putrequest("POST", "/")
        connection.putheader("Content-Length", str(receiver.BODY_MAX_BYTES + 1))
        connection.endheaders()
        assert connection.getresponse().status == 400
    assert httpx.get(url).status_code == 501
    assert not (tmp_path / RECEIVED).exists()


def test_the_file_begins_anew_when_it_is_large(running: Receiver, tmp_path: Path) -> None:
    (tmp_path / RECEIVED).write_bytes(b"x" * (receiver.FILE_MAX_BYTES + 1))
    httpx.post(f"http://{running.address}/", content="new")
    assert len((tmp_path / RECEIVED).read_text().splitlines()) == 1
