"""JobService alone, for tests and benchmarks: `python -m trainstack.vertex --dir DIR --buckets DIR --image URI=DIR`.

Prints its URL. The jobs' log entries are discarded.
"""

import argparse
import signal
import threading
from pathlib import Path

from trainstack.vertex import Jobs, serve


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    given = _arguments()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    jobs = Jobs(
        dir=given.dir,
        buckets_dir=given.buckets,
        images={uri: Path(tree) for uri, _, tree in (image.partition("=") for image in given.image)},
        write_log=lambda _entries: None,
        project=given.project,
        mounts=given.mounts,
        isolation=given.isolation,
        runtime=given.runtime,
        grace_s=given.grace,
    )
    with serve(jobs) as url:
        print(url, flush=True)  # noqa: T201  # what it is for
        ended.wait()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trainstack.vertex")
    parser.add_argument("--dir", type=Path, required=True, help="directory in which jobs are stored")
    parser.add_argument("--buckets", type=Path, required=True, help="directory whose folders are the buckets")
    parser.add_argument("--image", action="append", default=[], metavar="URI=DIR", help="repeatable")
    parser.add_argument("--project", default="local-project")
    parser.add_argument("--mounts", choices=["auto", "private", "environment"], default="auto")
    parser.add_argument("--isolation", choices=["enforced", "none"], default="none")
    parser.add_argument("--runtime", choices=["process", "container"], default="process")
    parser.add_argument("--grace", type=float, default=30.0, help="seconds from SIGTERM to SIGKILL")
    return parser.parse_args()


if __name__ == "__main__":
    main()
