"""JobService alone: `python -m trainmaster.local.vertex --dir DIR --buckets DIR --image URI=DIR --port 0`.

Prints its URL on standard output and the jobs' log entries on standard error, one JSON object a line.
"""

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from trainmaster.local.http import serving
from trainmaster.local.jobs.runs.log import Entry
from trainmaster.local.vertex import Jobs


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    asyncio.run(_serve(_arguments()))


async def _serve(given: argparse.Namespace) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    jobs = Jobs(
        dir=given.dir,
        buckets_dir=given.buckets,
        images=dict(given.image),
        write_log=_to_stderr,
        project=given.project,
        region=given.region,
        mounts=given.mounts,
        runtime=given.runtime,
        capacity=given.capacity,
        grace_s=given.grace,
    )
    await jobs.start()
    try:
        async with serving(jobs, port=given.port) as url:
            sys.stdout.write(f"{url}\n")
            sys.stdout.flush()
            await ended.wait()
    finally:
        await jobs.stop()


def _to_stderr(entries: list[Entry]) -> None:
    for entry in entries:
        sys.stderr.write(json.dumps(entry) + "\n")
    sys.stderr.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m trainmaster.local.vertex", description="Vertex AI JobService on one machine"
    )
    parser.add_argument("--dir", type=Path, required=True, help="where jobs are kept")
    parser.add_argument("--buckets", type=Path, required=True, help="directory whose folders are the buckets")
    parser.add_argument(
        "--image", type=_image, action="append", default=[], metavar="URI=DIR",
        help="an image, provided by a source tree with a Dockerfile; repeatable",
    )  # fmt: skip
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--project", default="local-project")
    parser.add_argument("--region", default="us-central1")
    parser.add_argument("--mounts", choices=["auto", "private", "environment"], default="auto")
    parser.add_argument("--runtime", choices=["process", "container", "auto"], default="process")
    parser.add_argument("--capacity", type=int, help="replicas at once; default four for each processor")
    parser.add_argument(
        "--grace", type=float, default=30.0, help="seconds from SIGTERM to SIGKILL for a replica"
    )
    return parser.parse_args()


def _image(text: str) -> tuple[str, Path]:
    uri, equals, tree = text.partition("=")
    if not equals or not uri or not tree:
        raise argparse.ArgumentTypeError(f"expected URI=DIR, found {text!r}")
    return uri, Path(tree)


if __name__ == "__main__":
    main()
