"""From process start to the job's creation: ours, with claim and record, against a bare function.

python bench/cold_start.py [--rounds 7]

Every measurement is a new process under functions-framework, handling one event against local servers of
the same kind. The two sides take turns, so that whatever else the machine does meets both. Byte code is
warm on both sides, as it is in a deployed container.
"""

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from trainmaster.deploy.stage import stage  # noqa: E402  # needs the line above
from trainstack.events.clients import clients_of  # noqa: E402

IMAGE = "us-docker.pkg.dev/p1/repo/program"
PROGRAM = ROOT / "tests" / "stack" / "jobs" / "images" / "program"
REQUEST = f"""
model_name: bench
image: {IMAGE}
cluster:
  chief: {{machine: n1-standard-4}}
"""
BARE, SUBMITTED, DUPLICATE, REFUSED = "bare function", "submitted", "duplicate", "refused"
LIMITS = {SUBMITTED: 1.0, DUPLICATE: 0.5, REFUSED: 0.5}


@dataclass(frozen=True, kw_only=True)
class Start:
    """One cold start. `seconds` from before the process to after the answer."""

    seconds: float
    peak_mb: float


@contextlib.contextmanager
def server(module: str, *arguments: str) -> Iterator[str]:
    """The URL of one of our emulators, in a separate process."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


class Drops:
    """Uploads to the inbox, and their events."""

    def __init__(self, storage_url: str) -> None:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        self._client = storage.Client(
            project="p1", credentials=AnonymousCredentials(), client_options={"api_endpoint": storage_url}
        )
        for name in ("inbox", "ledger", "models", "champions"):
            self._client.create_bucket(name)
        self._numbers = itertools.count()

    def event(self, content: str) -> dict[str, Any]:
        blob = self._client.bucket("inbox").blob(f"requests/{next(self._numbers)}.yaml")
        blob.upload_from_string(content)
        return {
            "bucket": "inbox",
            "name": blob.name,
            "generation": str(blob.generation),
            "size": str(blob.size),
            "timeCreated": blob.time_created.isoformat(),
        }


def measured(source: Path, event: Mapping[str, Any], environment: Mapping[str, str]) -> Start:
    command = [sys.executable, str(ROOT / "bench" / "one_event.py"), str(source), json.dumps(event)]
    started_at = time.time()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{source} failed:\n{done.stdout}{done.stderr}")
    told = json.loads(done.stdout.splitlines()[-1])
    return Start(seconds=told["answered_at"] - started_at, peak_mb=told["peak_mb"])


@dataclass(frozen=True, kw_only=True)
class Servers:
    """Where the local services are."""

    storage_url: str
    vertex_url: str
    pubsub_host: str


def environment_of(servers: Servers) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **inherited,
        "GOOGLE_CLOUD_PROJECT": "p1",
        "TRAINMASTER_REGION": "us-central1",
        "TRAINMASTER_INBOX_BUCKET": "inbox",
        "TRAINMASTER_LEDGER_BUCKET": "ledger",
        "TRAINMASTER_MODELS_BUCKET": "models",
        "TRAINMASTER_CHAMPIONS_BUCKET": "champions",
        "TRAINMASTER_NOTICES_TOPIC": "notices",
        "TRAINMASTER_FUNCTION_TIMEOUT_S": "120",
        "STORAGE_EMULATOR_HOST": servers.storage_url,
        "VERTEX_EMULATOR_HOST": servers.vertex_url,
        "PUBSUB_EMULATOR_HOST": servers.pubsub_host,
        "BENCH_IMAGE": IMAGE,
    }


def storage_operations(source: Path, event: Mapping[str, Any], servers: Servers) -> int:
    """Requests to Cloud Storage that one event takes, counted on the wire; the process is not timed."""
    from tests.contract.proxy import proxy_to

    with proxy_to(servers.storage_url) as proxy:
        environment = environment_of(replace(servers, storage_url=proxy.url))
        environment["DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA"] = "true"
        measured(source, event, environment)
        return len(proxy.passed)


def run(rounds: int) -> bool:
    """Print the table; whether every limit holds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stage(folder / "functions")
        ours, bare = folder / "functions" / "main.py", ROOT / "bench" / "bare" / "main.py"
        buckets = folder / "storage" / "buckets"
        jobs = (str(folder / "jobs"), str(buckets), f"{IMAGE}={PROGRAM}")
        with (
            server("trainstack.storage", "--dir", str(folder / "storage")) as storage_url,
            server("tests.stack.jobs.alone", *jobs) as vertex_url,
            server("trainstack.pubsub", "--dir", str(folder / "pubsub"), "--port", "0") as pubsub,
        ):
            host = pubsub.rpartition("=")[2]  # a line for a shell
            servers = Servers(storage_url=storage_url, vertex_url=vertex_url, pubsub_host=host)
            with clients_of(host) as clients:
                clients.publisher.create_topic(name="projects/p1/topics/notices")
            drops, environment = Drops(storage_url), environment_of(servers)
            known = drops.event(REQUEST)
            for source in (ours, bare):
                measured(source, known, environment)  # writes byte code; also makes `known` a duplicate
            starts: dict[str, list[Start]] = {BARE: [], SUBMITTED: [], DUPLICATE: [], REFUSED: []}
            for _ in range(rounds):
                starts[BARE].append(measured(bare, known, environment))
                starts[SUBMITTED].append(measured(ours, drops.event(REQUEST), environment))
                starts[DUPLICATE].append(measured(ours, known, environment))
                starts[REFUSED].append(measured(ours, drops.event("model_name: 1"), environment))
            operations = {
                SUBMITTED: storage_operations(ours, drops.event(REQUEST), servers),
                DUPLICATE: storage_operations(ours, known, servers),
                REFUSED: storage_operations(ours, drops.event("a: 1"), servers),
            }
        return report(starts, operations)


def report(starts: Mapping[str, list[Start]], operations: Mapping[str, int]) -> bool:
    print(f"{'':<16}{'median':>9}{'fastest':>9}{'peak':>9}{'storage ops':>13}{'of bare':>9}{'limit':>7}")
    base = statistics.median(start.seconds for start in starts[BARE])
    kept = True
    for what, measurements in starts.items():
        seconds = statistics.median(start.seconds for start in measurements)
        fastest = min(start.seconds for start in measurements)
        peak = max(start.peak_mb for start in measurements)
        count = str(operations.get(what, "-"))
        limit = LIMITS.get(what)
        kept = kept and (limit is None or seconds / base <= limit)
        told = f"{limit:.2f}" if limit else "-"
        print(
            f"{what:<16}{seconds:>7.2f} s{fastest:>7.2f} s{peak:>6.0f} MB{count:>13}{seconds / base:>9.2f}{told:>7}"
        )
    print("Every limit is kept." if kept else "A limit is NOT kept.")
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    sys.exit(0 if run(parser.parse_args().rounds) else 1)
