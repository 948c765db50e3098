"""`make demo`: a real request's whole way on this machine, live, and checked at its end.

The request of examples/demo.yaml is dropped into the inbox of a fresh local stack. From there on
the demo only watches: what moves are the functions, the local services and the trainer.
"""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from string import Template

from rich.console import Console
from rich.syntax import Syntax

from console.clients import Target, storage_client, target_from
from console.demo_report import report
from console.local_stack import StackFailed, local_stack
from console.view import View
from console.watch import Watch
from console.way import TERMINAL_STATES, Sighting

ROOT = Path(__file__).resolve().parent.parent
REQUEST = ROOT / "examples" / "demo.yaml"
DATASET_WRITER = ROOT / "examples" / "demo_dataset.py"
OBJECT_NAME = "requests/demo.yaml"
MARKER = ".demo"  # a folder with this file was made by the demo, and may be emptied by it
DEADLINE_S = 600
POLL_S = 0.25


class DemoFailed(Exception):
    """The demo cannot go on; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Dropped:
    generation: int
    at: datetime


def run_demo(state: Path) -> int:
    """0 if the record says succeeded, the model loads and the manifest's hashes match; else 1."""
    console = Console()
    try:
        fresh(state)
        console.print("Starting the local stack.", style="dim")
        with local_stack(state, state.parent / f"{state.name}.log") as environment:
            return _whole_way(console, target_from(environment), state)
    except (DemoFailed, StackFailed) as problem:
        console.print(str(problem), style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130


def fresh(state: Path) -> None:
    """An empty folder for the stack; what an earlier demo left there is removed.

    Raises:
        DemoFailed: the folder exists and holds something that no demo made.
    """
    if state.exists() and any(state.iterdir()) and not (state / MARKER).exists():
        raise DemoFailed(
            f"{state} holds something else than an earlier demo. Name an empty folder with --state."
        )
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    (state / MARKER).touch()


def _whole_way(console: Console, target: Target, state: Path) -> int:
    console.print("Preparing the data.", style="dim")
    data_dir = _dataset(target, state)
    request = Template(REQUEST.read_text()).substitute(
        project=target.project, region=target.region, data_dir=data_dir
    )
    console.rule("The request", align="left")
    said = "\n".join(line for line in request.splitlines() if not line.startswith("#"))
    console.print(Syntax(said, "yaml", background_color="default", word_wrap=True))
    dropped = _drop(target, request)
    seen = _follow(console, target, dropped)
    return report(console, seen, data_dir, state)


def _dataset(target: Target, state: Path) -> str:
    """Where the replicas find TFDS data: the real data set's folder, or the generated one's bucket.

    Raises:
        DemoFailed: the small data set could not be written.
    """
    real = os.environ.get("TFDS_DATA_DIR")
    if real:
        return str(Path(real).resolve())
    local = state / "dataset"
    written = subprocess.run(
        [sys.executable, str(DATASET_WRITER), "--data_dir", str(local)],
        check=False,
        capture_output=True,
        text=True,
    )
    if written.returncode != 0:
        raise DemoFailed(f"The demo's data set could not be written.\n{written.stderr}")
    bucket = storage_client(target).create_bucket(f"{target.project}-datasets")
    for path in sorted(file for file in local.rglob("*") if file.is_file()):
        bucket.blob(f"tfds/{path.relative_to(local).as_posix()}").upload_from_filename(str(path))
    return f"gs://{bucket.name}/tfds"


def _drop(target: Target, request: str) -> Dropped:
    blob = storage_client(target).bucket(target.inbox_bucket).blob(OBJECT_NAME)
    blob.upload_from_string(request, content_type="application/yaml")
    return Dropped(generation=blob.generation, at=blob.time_created)


def _follow(console: Console, target: Target, dropped: Dropped) -> Sighting:
    """The last sighting: the record has ended.

    Raises:
        DemoFailed: it had not after DEADLINE_S seconds.
    """
    watch = Watch(target, object_name=OBJECT_NAME, generation=dropped.generation, dropped_at=dropped.at)
    view = View(console)
    deadline = time.monotonic() + DEADLINE_S
    with view.running():
        while True:
            seen = watch.look()
            view.show(seen)
            if ended(seen):
                return seen
            if time.monotonic() > deadline:
                raise DemoFailed(
                    f"The run had not ended after {DEADLINE_S} s; its record says {seen.record}."
                )
            time.sleep(POLL_S)


def ended(seen: Sighting) -> bool:
    return (seen.record or {}).get("state") in TERMINAL_STATES
