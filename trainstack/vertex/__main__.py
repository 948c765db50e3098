"""JobService alone, for tests and benchmarks: `python -m trainstack.vertex --dir DIR --buckets DIR --image URI=DIR`.

Prints its URL. The jobs' log entries are discarded.
"""

import argparse
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from trainstack.alone import run_alone
from trainstack.http import serving
from trainstack.vertex import Jobs


def serve_jobs(state: Path, *, port: int, image: list[str], **more: Any) -> AbstractAsyncContextManager[str]:
    """Serve jobs whose `image` flags are `URI=DIR`; `more` are fields of `Jobs`."""
    images = {uri: Path(tree) for uri, _, tree in (flag.partition("=") for flag in image)}
    return serving(Jobs(dir=state, images=lambda: images, write_log=lambda _entries: None, **more), port=port)


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--buckets", type=Path, required=True, dest="buckets_dir", help="folder of the buckets"
    )
    parser.add_argument("--image", action="append", default=[], metavar="URI=DIR", help="repeatable")
    parser.add_argument("--project", default="local-project")
    parser.add_argument("--mounts", choices=["auto", "private", "environment"], default="auto")
    parser.add_argument("--isolation", choices=["enforced", "none"], default="none")
    parser.add_argument("--runtime", choices=["process", "container"], default="process")
    parser.add_argument("--grace", type=float, default=30.0, dest="grace_s", help="from SIGTERM to SIGKILL")


if __name__ == "__main__":
    sys.exit(run_alone("vertex", serve_jobs, add_flags=add_flags))
