"""The local Cloud Storage and Pub/Sub beside other people's emulators, with the official clients.

python bench/local_services.py [--rounds 5] [--storage COMMAND] [--pubsub COMMAND]

COMMAND starts the other server, with {port} in the place of its port; the defaults are gcp-storage-emulator, from a
virtual environment of its own, and Google's Pub/Sub emulator, a component of gcloud. The sides take turns, and the fastest
of each side's rounds counts, so that whatever else the machine does meets both. A side that cannot be started is left out.
"""

import argparse
import contextlib
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import grpc
import requests
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from google.cloud.pubsub_v1 import SubscriberClient
from google.cloud.pubsub_v1.subscriber.message import Message
from google.pubsub_v1 import PublisherClient, PubsubMessage
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from bench.stack_start import descendants, processor_s  # noqa: E402  # needs the line above

OBJECTS, SIZE = 200, 1024
LISTED, LISTS = 200, 20
SINGLE, BATCHES, BATCH = 300, 20, 100
LIMITS = {"put": 2.0, "get": 1.2, "list": 1.2, "publish": 1.5, "publish 100": 3.4, "pull and ack": 10.0}
STARTS_WITHIN_S = 60

Rates = dict[str, tuple[float, float]]
"""By kind of call: calls in a second, and the server's processor time for each in milliseconds."""


@contextlib.contextmanager
def server(command: str) -> Iterator[tuple[int, int]]:
    """The port of a started server, and its process."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            shlex.split(command.format(port=port, folder=folder)), cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            until = time.monotonic() + STARTS_WITHIN_S
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{command} did not start: status {process.returncode}")
                time.sleep(0.05)
            yield port, process.pid
        finally:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def measured(pid: int, count: int, work: Callable[[], object]) -> tuple[float, float]:
    """The rate of `count` calls that `work` makes, and the server's processor time for each."""
    before, began = sum(map(processor_s, descendants(pid))), time.perf_counter()
    work()
    seconds, spent = time.perf_counter() - began, sum(map(processor_s, descendants(pid))) - before
    return count / seconds, 1000 * spent / count


def storage_rates(port: int, pid: int) -> Rates:
    """Objects of 1 KiB, one call after the other."""
    client = storage.Client(
        project="p1", credentials=AnonymousCredentials(), client_options={"api_endpoint": f"http://127.0.0.1:{port}"},
        _http=requests.Session(),
    )  # fmt: skip
    name = f"bench-{time.monotonic_ns()}"
    bucket, content = client.create_bucket(name), os.urandom(SIZE)
    blobs = [bucket.blob(f"folder/{number:04}") for number in range(OBJECTS)]
    return {
        "put": measured(pid, OBJECTS, lambda: [blob.upload_from_string(content) for blob in blobs]),
        "get": measured(pid, OBJECTS, lambda: [blob.download_as_bytes() for blob in blobs]),
        "list": measured(pid, LISTS, lambda: [list(client.list_blobs(name)) for _ in range(LISTS)]),
    }


def pubsub_rates(port: int, pid: int) -> Rates:
    """Messages of 1 KiB: published singly and by the hundred, and pulled by a streaming pull."""
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    publisher = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
    subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
    topic, message = f"projects/p1/topics/t{time.monotonic_ns()}", PubsubMessage(data=os.urandom(SIZE))
    publisher.create_topic(name=topic)
    subscription = topic.replace("/topics/", "/subscriptions/")
    subscriber.create_subscription(name=subscription, topic=topic)
    total = SINGLE + BATCHES * BATCH

    def publish(calls: int, size: int) -> None:
        for _ in range(calls):
            publisher.publish(topic=topic, messages=[message] * size)

    def pull() -> None:
        left, done = iter(range(total - 1, -1, -1)), threading.Event()

        def take(received: Message) -> None:
            received.ack_with_response()
            if next(left) == 0:
                done.set()

        pulling = subscriber.subscribe(subscription, callback=take)
        if not done.wait(STARTS_WITHIN_S):
            raise RuntimeError("not all messages came")
        pulling.cancel()
        pulling.result()

    rates = {
        "publish": measured(pid, SINGLE, lambda: publish(SINGLE, 1)),
        "publish 100": measured(pid, BATCHES * BATCH, lambda: publish(BATCHES, BATCH)),
        "pull and ack": measured(pid, total, pull),
    }
    channel.close()
    return rates


def compared(measure: Callable[[int, int], Rates], ours: str, other: str, rounds: int) -> bool:
    """Print both sides; whether every ratio is within its limit."""
    best: dict[str, Rates] = {"ours": {}, "other": {}}
    with contextlib.ExitStack() as running:
        sides = {"ours": running.enter_context(server(ours))}
        try:
            sides["other"] = running.enter_context(server(other))
        except (OSError, RuntimeError) as fault:
            print(f"without the other side: {fault}")
        for _ in range(rounds):
            for side, (port, pid) in sides.items():
                for kind, (rate, spent) in measure(port, pid).items():
                    before = best[side].get(kind, (0.0, float("inf")))
                    best[side][kind] = max(before[0], rate), min(before[1], spent)
    kept = [shown(kind, rates, best["other"].get(kind)) for kind, rates in best["ours"].items()]
    return all(kept)


def shown(kind: str, ours: tuple[float, float], other: tuple[float, float] | None) -> bool:
    line = f"{kind:14}{ours[0]:>9.0f}/s{ours[1]:>8.2f} ms"
    if other is None:
        print(line)
        return True
    ratio = ours[0] / other[0]
    print(f"{line}{other[0]:>9.0f}/s{other[1]:>8.2f} ms{ratio:>9.2f}   limit {LIMITS[kind]}")
    return ratio >= LIMITS[kind]


def commands() -> Mapping[str, str]:
    """The other servers, as they start by default."""
    jar = next(
        Path("/usr/lib/google-cloud-sdk/platform/pubsub-emulator/lib").glob("*-all.jar"), "emulator.jar"
    )
    return {
        "storage": "gcp-storage-emulator start --host=127.0.0.1 --port={port} --quiet",
        "pubsub": f"java -jar {jar} --host=127.0.0.1 --port={{port}}",
    }


def main() -> int:
    """1 when a ratio is below its limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    for service, command in commands().items():
        parser.add_argument(f"--{service}", default=command, metavar="COMMAND")
    arguments = parser.parse_args()
    print(f"{'':14}{'ours':>11}{'processor':>11}{'other':>11}{'processor':>11}{'ratio':>9}")
    ours = {
        name: f"{sys.executable} -m trainstack.{name} --dir {{folder}} --port {{port}}" for name in commands()
    }
    kept = [
        compared(storage_rates, ours["storage"], arguments.storage, arguments.rounds),
        compared(pubsub_rates, ours["pubsub"], arguments.pubsub, arguments.rounds),
    ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
