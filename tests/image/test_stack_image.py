"""The stack's image: its size, its user, and the services at one address that other machines reach."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import requests
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import pubsub_v1, storage

from tests.processes import run_to_end
from trainmaster.deploy.local_image import Builder, secrets
from trainstack.process.ports import free_ports

from .conftest import ROOT, needs

pytestmark = [pytest.mark.slow, needs("builder"), pytest.mark.timeout(900)]

IMAGE = "localhost/trainmaster/tests/stack:latest"
LARGEST_MB = 400
TRAIN = "mkdir p && cd p && python3 -m trainmaster init && python3 -m trainmaster submit request.yaml --wait"


def run_in(container: str, *command: str) -> list[str]:
    return ["buildah", "run", "--isolation", "chroot", container, "--", *command]


def output_of(*command: str) -> str:
    return run_to_end(command, check=True).stdout


@pytest.fixture(scope="module")
def container(build: Builder, base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A container of the image, which is built from the wheel."""
    context = tmp_path_factory.mktemp("context")
    wheel = [sys.executable, "-m", "hatchling", "build", "-d", str(context), "-t", "wheel"]
    subprocess.run(wheel, cwd=ROOT, check=True, capture_output=True)
    (context / "Dockerfile").write_text((ROOT / "trainstack" / "Dockerfile").read_text())
    options = ["--build-arg", f"BASE_IMAGE={base}"]
    for name, path in secrets(os.environ):
        options += ["--secret", f"id={name},src={path}"]
    build.build(context=context, tag=IMAGE, options=tuple(options))
    name = output_of("buildah", "from", IMAGE).strip()
    yield name
    subprocess.run(["buildah", "rm", name], check=False, capture_output=True)


@pytest.fixture(scope="module")
def ports(container: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    """Those of the API and the console of a stack in the container, which shares this machine's network."""
    ports, log = free_ports(2), tmp_path_factory.mktemp("log") / "log"
    front = (
        "env TRAINMASTER_HOSTS=stack python3 -m trainstack.stack.front --state /home/stack/.trainmaster "
        f"--listen 0.0.0.0 --port {ports[0]} --console-port {ports[1]} -- python3 -m trainmaster up"
    )
    command = run_in(container, *front.split())
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as running:
        deadline = time.monotonic() + 60
        while "In another shell" not in log.read_text():
            assert running.poll() is None and time.monotonic() < deadline, log.read_text()  # noqa: PT018
            time.sleep(0.1)
        yield ports
        subprocess.run(
            run_in(container, "python3", "-m", "trainmaster", "down"), check=True, capture_output=True
        )
        assert running.wait(60) == 0


def test_the_image_is_small_and_its_user_is_not_root(container: str) -> None:
    size, unit = json.loads(output_of("buildah", "images", "--json", IMAGE))[0]["size"].split()
    assert unit == "MB"
    assert float(size) < LARGEST_MB
    assert output_of(*run_in(container, "id", "-u")).strip() == "10001"


def test_googles_client_uses_the_one_port(ports: list[int]) -> None:
    options = ClientOptions(api_endpoint=f"http://localhost:{ports[0]}")
    client = storage.Client(
        project="trainmaster-local", credentials=AnonymousCredentials(), client_options=options
    )
    client.create_bucket("of-a-client").blob("greeting.txt").upload_from_string("hello")
    assert client.bucket("of-a-client").blob("greeting.txt").download_as_bytes() == b"hello"


def test_googles_client_of_pubsub_uses_it_too(ports: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", f"localhost:{ports[0]}")
    topic, subscription = (
        f"projects/trainmaster-local/{kind}/one-port" for kind in ("topics", "subscriptions")
    )
    with pubsub_v1.PublisherClient() as publisher, pubsub_v1.SubscriberClient() as subscriber:
        publisher.create_topic(name=topic)
        subscriber.create_subscription(name=subscription, topic=topic)
        publisher.publish(topic, b"hello").result(timeout=30)
        (pulled,) = subscriber.pull(subscription=subscription, max_messages=1).received_messages
    assert pulled.message.data == b"hello"


def test_nothing_but_the_two_ports_accepts_connections_from_outside(container: str, ports: list[int]) -> None:
    """Of the image's user: the container of this test shares this machine's network."""
    sockets = output_of(*run_in(container, "sh", "-c", "tail -qn +2 /proc/net/tcp /proc/net/tcp6"))
    rows = [line.split() for line in sockets.splitlines()]
    listening = [row[1].split(":") for row in rows if (row[3], row[7]) == ("0A", "10001")]
    outside = {int(port, 16) for address, port in listening if not address.endswith("7F")}
    assert outside == set(ports)
    assert len(listening) > len(outside)  # the services', on loopback


def test_other_addresses_reach_it_and_other_names_only_if_it_has_them(ports: list[int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        address = probe.getsockname()[0]
    url = f"http://{address}:{ports[0]}/v1/projects/trainmaster-local/topics"
    assert requests.get(url, headers={"Host": "localhost"}, timeout=30).json()["topics"]
    for port, path in ((ports[0], "/v1/projects/trainmaster-local/topics"), (ports[1], "/")):
        statuses = [
            requests.get(f"http://{address}:{port}{path}", headers={"Host": host}, timeout=30).status_code
            for host in ("localhost", f"stack:{port}", "page.example")
        ]
        assert statuses == [200, 200, 403]


def test_a_run_trains_in_the_container(container: str, ports: list[int]) -> None:
    done = run_to_end(run_in(container, "sh", "-c", f"cd /home/stack && {TRAIN}"))
    assert done.returncode == 0, done.stderr
    assert "has succeeded" in done.stderr
