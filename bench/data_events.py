"""A burst of data events on the local stack: how many writes, to how few names, and how fast.

python bench/data_events.py [--events 10000] [--deliverers 8]
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from tests.e2e.project import Project, running_project  # noqa: E402  # needs the line above


def headers_of(bucket: str, number: int) -> Mapping[str, str]:
    return {
        "ce-id": f"burst-{number}",
        "ce-source": f"//storage.googleapis.com/projects/_/buckets/{bucket}",
        "ce-specversion": "1.0",
        "ce-type": "google.cloud.storage.object.v1.finalized",
        "ce-time": "2026-01-01T00:00:00Z",
        "ce-subject": f"objects/burst/{number}",
        "ce-bucket": bucket,
        "Content-Type": "application/json",
    }


def deliver(url: str, bucket: str, numbers: range) -> list[float]:
    """Seconds of each delivery, by one deliverer, one after the other; a new connection each, as the stack does."""
    address = urlsplit(url)
    taken = []
    for number in numbers:
        body = json.dumps({
            "bucket": bucket, "name": f"burst/{number:06d}.jpg", "generation": str(10**15 + number),
            "size": "1000", "timeCreated": "2026-01-01T00:00:00Z", "contentType": "image/jpeg",
        }).encode()
        began = time.perf_counter()
        connection = HTTPConnection(address.hostname or "", address.port or 0, timeout=60)
        try:
            connection.request("POST", "/", body=body, headers=dict(headers_of(bucket, number)))
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        taken.append(time.perf_counter() - began)
        assert answer.status == 200, answer.status
    return taken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=10000)
    parser.add_argument("--deliverers", type=int, default=8)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_project(Path(folder) / "state", project="bench-data") as project:
        url = project.function_url("on-data-arrived")
        bucket = f"{project.id}-data"
        deliver(url, bucket, range(10**6, 10**6 + 20))
        share = a.events // a.deliverers
        began = time.perf_counter()
        with ThreadPoolExecutor(a.deliverers) as pool:
            parts = [pool.submit(deliver, url, bucket, range(i * share, (i + 1) * share)) for i in range(a.deliverers)]
            taken = sorted(t for part in parts for t in part.result())
        wall = time.perf_counter() - began
        n = sum(1 for _ in project.storage.list_blobs(project.ledger, prefix="arrivals/"))
        print(len(taken), "events", f"{wall:.1f}s", "median ms", 1000 * statistics.median(taken), "p99", 1000 * taken[int(len(taken) * .99)], "batches", n)


main()
