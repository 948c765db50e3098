"""What every demo does: a fresh local stack, its data, the request dropped, its way followed to the end.

From the drop on a demo only watches: what moves are the functions, the local services and the trainer.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from string import Template
from typing import Generic, Protocol, TypeVar

from rich.console import Console
from rich.syntax import Syntax

from trainmaster.cli.demo.local_stack import StackFailed, local_stack
from trainmaster.cli.demo.view import View
from trainmaster.cli.demo.way import Sighting
from trainmaster.client.clients import Target, storage_client, target_from
from trainmaster.local.stack.state import owner_of
from trainmaster.resources import ROOT

DATASET_WRITER = ROOT / "examples" / "demo_dataset.py"
MARKER = ".demo"  # a folder with this file was made by a demo, and may be emptied by one
DEADLINE_S = 600
POLL_S = 0.25

S = TypeVar("S", bound=Sighting)
S_co = TypeVar("S_co", bound=Sighting, covariant=True)


class DemoFailed(Exception):
    """The demo cannot go on; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A request in the inbox."""

    object_name: str
    generation: int
    at: datetime
    uri: str


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where a demo plays."""

    target: Target
    state: Path  # the stack's folder
    data_dir: str  # where replicas find TFDS data: a path, or a `gs://` URI


class Watcher(Protocol[S_co]):
    """Follows one request; every call of `look` says where it stands now."""

    def look(self) -> S_co: ...


@dataclass(frozen=True, kw_only=True)
class Demo(Generic[S]):
    """What one demo shows beside what all do."""

    request: Path  # a template; ${project}, ${region} and ${data_dir} are filled in
    dataset: str  # one of those that examples/demo_dataset.py writes
    watch: Callable[[Target, Dropped], Watcher[S]]
    view: Callable[[Console], View[S]]
    report: Callable[[Console, S, Scene], int]  # the exit status: 0 if everything holds

    def run(self, state: Path) -> int:
        """The exit status of the whole demo on an emptied `state`: 0 if everything it shows holds, else 1."""
        return on_fresh_stack(state, self._whole_way)

    def _whole_way(self, console: Console, environment: Mapping[str, str], state: Path) -> int:
        target = target_from(environment)
        scene = Scene(target=target, state=state, data_dir=_data_dir(target, state, self.dataset))
        request = Template(self.request.read_text()).substitute(
            project=target.project, region=target.region, data_dir=scene.data_dir
        )
        show_document(console, "The request", request)
        dropped = drop(target, f"requests/{self.request.name}", request)
        seen = follow(self.view(console), self.watch(target, dropped))
        return self.report(console, seen, scene)


def on_fresh_stack(
    state: Path, play: Callable[[Console, Mapping[str, str], Path], int], *arguments: str
) -> int:
    """The exit status of `play` beside a stack, started with `arguments`, on the emptied `state`; 1 if it failed."""
    console = Console()
    try:
        fresh(state)
        console.print("Starting the local stack.", style="dim")
        with local_stack(state, state.parent / f"{state.name}.log", arguments) as environment:
            console.print("Preparing the data.", style="dim")
            return play(console, environment, state)
    except (DemoFailed, StackFailed) as problem:
        console.print(str(problem), style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130


def fresh(state: Path) -> None:
    """An empty folder for the stack; what an earlier demo left there is removed.

    Raises:
        DemoFailed: the folder exists and holds something that no demo made, or a demo that is running.
    """
    if (state / MARKER).exists() and owner_of(state) is not None:
        raise DemoFailed(
            f"A demo is running in {state}. Wait for its end, or name another folder with --state."
        )
    if state.exists() and any(state.iterdir()) and not (state / MARKER).exists():
        raise DemoFailed(
            f"{state} holds something else than an earlier demo. Name an empty folder with --state."
        )
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    (state / MARKER).touch()


def _data_dir(target: Target, state: Path, dataset: str) -> str:
    """Where the replicas find TFDS data: the real data set's folder, or the generated one's bucket.

    Raises:
        DemoFailed: the small data set could not be written.
    """
    real = os.environ.get("TFDS_DATA_DIR")
    if real:
        return str(Path(real).resolve())
    return delivered(target, write_dataset(state / "dataset", dataset))


def write_dataset(folder: Path, dataset: str, *options: str) -> Path:
    """The TFDS data directory `folder`, with the small data set as the options say.

    Raises:
        DemoFailed: it could not be written.
    """
    command = [sys.executable, str(DATASET_WRITER), "--dataset", dataset, "--data_dir", str(folder), *options]
    written = subprocess.run(command, check=False, capture_output=True, text=True)
    if written.returncode != 0:
        raise DemoFailed(f"The demo's data set could not be written.\n{written.stderr}")
    return folder


def delivered(target: Target, folder: Path) -> str:
    """The URI of the data directory, uploaded to a new bucket, which no rule watches."""
    bucket = storage_client(target).create_bucket(f"{target.project}-datasets")
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        bucket.blob(f"tfds/{path.relative_to(folder).as_posix()}").upload_from_filename(str(path))
    return f"gs://{bucket.name}/tfds"


def show_document(console: Console, title: str, document: str) -> None:
    """A request or a rule without its comments, under a heading."""
    console.rule(title, align="left")
    said = "\n".join(line for line in document.splitlines() if not line.startswith("#"))
    console.print(Syntax(said, "yaml", background_color="default", word_wrap=True))


def drop(target: Target, object_name: str, request: str) -> Dropped:
    """The request or rule, uploaded to the inbox under that name.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: Cloud Storage refused it.
    """
    blob = storage_client(target).bucket(target.inbox_bucket).blob(object_name)
    blob.upload_from_string(request, content_type="application/yaml")
    return Dropped(
        object_name=object_name,
        generation=blob.generation,
        at=blob.time_created,
        uri=f"gs://{target.inbox_bucket}/{object_name}",
    )


def follow(view: View[S], watch: Watcher[S]) -> S:
    """The last sighting: the record has ended.

    Raises:
        DemoFailed: it had not after DEADLINE_S seconds.
    """
    deadline = time.monotonic() + DEADLINE_S
    with view.running():
        while True:
            seen = watch.look()
            view.show(seen)
            if seen.ended:
                return seen
            if time.monotonic() > deadline:
                raise DemoFailed(
                    f"The run had not ended after {DEADLINE_S} s; its record says {seen.record}."
                )
            time.sleep(POLL_S)
