"""The digests of base images come from their registries, by the protocol that Docker's own registry speaks."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tools.images import (
    IMAGES,
    CannotPinError,
    RegistryImage,
    digest_of,
    image_from,
    pin_images,
    with_digest,
)
from trainstack.http import in_thread, serving
from trainstack.process.ports import free_port

INDEX = "application/vnd.oci.image.index.v1+json"
CONTENT = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": []}).encode()
DIGEST = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
OLD, NEW = f"sha256:{'0' * 64}", f"sha256:{'1a' * 32}"


@pytest.mark.parametrize(
    ("name", "host", "repository"),
    [
        ("python:3.11", "registry-1.docker.io", "library/python"),
        ("tensorflow/tensorflow:3.11", "registry-1.docker.io", "tensorflow/tensorflow"),
        ("gcr.io/cloud-builders/docker:3.11", "gcr.io", "cloud-builders/docker"),
        ("localhost:5000/python:3.11", "localhost:5000", "python"),
    ],
)
def test_a_name_says_where_its_image_is(name: str, host: str, repository: str) -> None:
    assert image_from(name) == RegistryImage(host=host, repository=repository, tag="3.11")


def test_only_a_registry_on_this_machine_is_spoken_to_without_tls() -> None:
    addresses = [
        image_from(name).registry
        for name in ("python:3", "127.0.0.1:5000/python:3", "localhost.evil.com/python:3")
    ]
    assert addresses == [
        "https://registry-1.docker.io",
        "http://127.0.0.1:5000",
        "https://localhost.evil.com",
    ]


@pytest.mark.parametrize("before", ["", f"@{OLD}"])
def test_a_digest_is_added_or_replaced_after_its_own_name_alone(before: str) -> None:
    text = f"a: python:3.11{before}\nb: python:3.11-slim{before}\nc: my/python:3.11{before}\nd: 'python:3.11{before}'\n"
    result = with_digest(text, "python:3.11", NEW, file="a.yaml").splitlines()
    assert result == [f"a: python:3.11@{NEW}", *text.splitlines()[1:3], f"d: 'python:3.11@{NEW}'"]


def test_a_file_that_does_not_name_the_image_is_a_mistake_in_the_table() -> None:
    with pytest.raises(
        CannotPinError, match=r"^a\.yaml does not name 'python:3\.12'\. Name it there, or change"
    ):
        with_digest("python:3.12-slim", "python:3.12", NEW, file="a.yaml")


def test_the_projects_own_files_name_every_image(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    for name, files in IMAGES.items():
        for file in files:
            assert f"{name}@{NEW}" in with_digest((root / file).read_text(), name, NEW, file=file)


def test_a_registry_that_wants_a_token_is_given_the_one_for_everyone_and_its_digest_is_written(
    tmp_path: Path,
) -> None:
    """As Docker Hub: the challenge names the place, the service and the scope."""

    def answer(path: str, headers: Mapping[str, str]) -> Answer:
        if path.startswith("/token"):
            assert path == "/token?scope=repository%3Aa%2Fb%3Apull&service=here"
            return 200, {}, b'{"token": "for-everyone"}'
        if headers.get("Authorization") != "Bearer for-everyone":
            challenge = (
                f'Bearer realm="http://{headers["Host"]}/token",service="here",scope="repository:a/b:pull"'
            )
            return 401, {"WWW-Authenticate": challenge}, b""
        assert INDEX in headers["Accept"]
        return 200, {"Docker-Content-Digest": DIGEST}, CONTENT

    with answering(answer) as address:
        name = f"{address}/a/b:1"
        for file in ("cloudbuild.yaml", "Dockerfile"):
            (tmp_path / file).write_text(f"image: {name}@{OLD}\n")
        pin_images(tmp_path, {name: ("cloudbuild.yaml", "Dockerfile")})
        assert {(tmp_path / file).read_text() for file in ("cloudbuild.yaml", "Dockerfile")} == {
            f"image: {name}@{DIGEST}\n"
        }


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((404, {}, b""), "404"),
        ((429, {}, b"toomanyrequests"), "429"),
        ((401, {"WWW-Authenticate": "Basic realm=x"}, b""), "it asks for a password, and offers no token for everyone"),
        ((200, {"Docker-Content-Digest": OLD}, CONTENT), f"says that .* is {OLD}, but it sent {DIGEST}"),
        ((200, {}, b"x" * (4 * 1024 * 1024 + 1)), "its answer has more than 4194304 bytes"),
    ],
)  # fmt: skip
def test_an_answer_without_a_digest_leaves_every_file_as_it_was(
    answer: "Answer", words: str, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM python\n")
    with answering(lambda _path, _headers: answer) as address, pytest.raises(CannotPinError, match=words):
        pin_images(tmp_path, {f"{address}/a/b:1": ("Dockerfile",)})
    assert (tmp_path / "Dockerfile").read_text() == "FROM python\n"


def test_a_registry_that_cannot_be_reached_is_named_with_what_to_do() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(
        CannotPinError, match=rf"^No digest of '{address}/a:1' from http://{address}: .*Repeat `make lock`"
    ):
        digest_of(f"{address}/a:1")


Answer = tuple[int, Mapping[str, str], bytes]


@contextmanager
def answering(answer: Callable[[str, Mapping[str, str]], Answer]) -> Iterator[str]:
    """The address of a server with these answers."""

    async def respond(request: Request) -> Response:
        path = f"{request.url.path}?{request.url.query}".removesuffix("?")
        status, headers, body = answer(path, request.headers)
        return Response(body, status, headers)

    app = Starlette(routes=[Route("/{path:path}", respond)])
    with in_thread(lambda: serving(app)) as url:
        yield url.removeprefix("http://")
