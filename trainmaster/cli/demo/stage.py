"""What all demos share: a fresh local stack, its data, a dropped request, and watching its run to the end.

After the drop a demo only watches: the functions, the local services and the trainer do the work.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.syntax import Syntax

from trainmaster.cli.demo.view import News, Picture, View
from trainmaster.cli.demo.watch import Dropped, Sighting, Watch
from trainmaster.cli.stack.process import StackFailed, local_stack
from trainmaster.client.clients import storage_client
from trainmaster.client.context import Context, context_of_stack
from trainmaster.local.stack.state import owner_of
from trainmaster.resources import ROOT

if TYPE_CHECKING:
    from google.cloud.storage import Bucket

DATASET_WRITER = ROOT / "examples" / "demo_dataset.py"
MARKER = ".demo"  # a folder with this file was made by a demo, and may be emptied by one
DEADLINE_S = 600
UPLOADERS = 8
POLL_S = 1.0  # each look costs the services a fiftieth of a second, beside the training

S = TypeVar("S")


class DemoFailed(Exception):
    """The demo cannot continue; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where a demo plays."""

    target: Context
    state: Path  # the stack's folder
    data_dir: str  # where replicas find TFDS data: a path, or a `gs://` URI


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What the demo of one dropped request shows beside what all do."""

    request: Path  # a template; ${project}, ${region} and ${data_dir} are filled in
    data: tuple[str, ...]  # what examples/demo_dataset.py writes, as its options
    picture: Picture[Sighting]
    news: News[Sighting]
    report: Callable[[Console, Sighting, Scene], int]  # the exit status: 0 if everything holds

    def run(self, state: Path) -> int:
        """The exit status of the whole demo on an emptied `state`: 0 if everything it shows holds, else 1."""
        return on_fresh_stack(state, self._whole_way)

    def _whole_way(self, console: Console, environment: Mapping[str, str], state: Path) -> int:
        target = context_of_stack(environment)
        real = os.environ.get("TFDS_DATA_DIR")
        data_dir = (
            str(Path(real).resolve())
            if real
            else delivered(target, write_dataset(state / "dataset", *self.data))
        )
        request = filled(self.request, target, data_dir=data_dir)
        show_document(console, "The request", request)
        watch = Watch(target, drop(target, f"requests/{self.request.name}", request))
        view = View(console, picture=self.picture, news=self.news)
        with view.running():
            seen = look_until(view, watch.look, lambda seen: seen.ended, "the end of the run")
        return self.report(console, seen, Scene(target=target, state=state, data_dir=data_dir))


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
            f"A demo is already running in {state}. Wait for it to end, or name another folder with --state."
        )
    if state.exists() and any(state.iterdir()) and not (state / MARKER).exists():
        raise DemoFailed(
            f"{state} contains something other than an earlier demo. Name an empty folder with --state."
        )
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    (state / MARKER).touch()


def write_dataset(folder: Path, *options: str) -> Path:
    """The TFDS data directory `folder`, with the small data set as the options say.

    Raises:
        DemoFailed: it could not be written.
    """
    command = [sys.executable, str(DATASET_WRITER), "--data_dir", str(folder), *options]
    written = subprocess.run(command, check=False, capture_output=True, text=True)
    if written.returncode != 0:
        raise DemoFailed(f"The demo's data set could not be written.\n{written.stderr}")
    return folder


def delivered(target: Context, folder: Path) -> str:
    """The URI of the data directory, uploaded to a new bucket, which no rule watches."""
    bucket = storage_client(target).create_bucket(f"{target.project}-datasets")
    upload_all(bucket, "tfds/", folder)
    return f"gs://{bucket.name}/tfds"


def upload_all(bucket: "Bucket", prefix: str, folder: Path) -> None:
    """Every file in `folder`, by several threads at once.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: Cloud Storage refused one.
    """
    from google.cloud.storage import transfer_manager

    transfer_manager.upload_many_from_filenames(
        bucket,
        sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()),
        source_directory=str(folder),
        blob_name_prefix=prefix,
        raise_exception=True,
        worker_type=transfer_manager.THREAD,
        max_workers=UPLOADERS,
    )


def filled(template: Path, target: Context, **more: str) -> str:
    """The template's text; names that are not given here, as a rule's own, stay as they are."""
    return Template(template.read_text()).safe_substitute(
        project=target.project, region=target.region, **more
    )


def show_document(console: Console, title: str, document: str) -> None:
    """A request or a rule without its comments, under a heading."""
    console.rule(title, align="left")
    said = "\n".join(line for line in document.splitlines() if not line.startswith("#"))
    console.print(Syntax(said, "yaml", background_color="default", word_wrap=True))


def drop(target: Context, object_name: str, request: str) -> Dropped:
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


def look_until(view: View[S], look: Callable[[], S], has_come: Callable[[S], bool], what: str) -> S:
    """The first sighting that `has_come` takes; all are shown.

    Raises:
        DemoFailed: it had not come after DEADLINE_S seconds.
    """
    deadline = time.monotonic() + DEADLINE_S
    while True:
        seen = look()
        view.show(seen)
        if has_come(seen):
            return seen
        if time.monotonic() > deadline:
            raise DemoFailed(f"Timed out after {DEADLINE_S} s waiting for: {what}. Last seen: {seen}.")
        time.sleep(POLL_S)
