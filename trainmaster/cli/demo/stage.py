"""What all demos share: a fresh local stack, its data, a dropped request, and watching its run to the end.

After the drop a demo only watches: the functions, the local services and the trainer do the work.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from trainmaster.cli.stack.process import StackFailed, local_stack
from trainmaster.cli.verb import JSON, print_data
from trainmaster.cli.watch.live import View, doing
from trainmaster.cli.watch.run import doing as run_doing
from trainmaster.cli.watch.run import news as run_news
from trainmaster.cli.watch.run import picture as run_picture
from trainmaster.client.clients import Clients, storage_client
from trainmaster.client.context import Context, context_of_stack
from trainmaster.client.find import Run, find_run, read_document
from trainmaster.client.logs.follow import look_until_over
from trainmaster.client.terminal import one_line
from trainmaster.client.watch.sighting import RunWatch, Sighting
from trainmaster.local.stack.state import owner_of
from trainmaster.orchestrator.core.names import object_uri, record_object, status_object
from trainmaster.resources import ROOT

if TYPE_CHECKING:
    from google.cloud.storage import Bucket

DATASET_WRITER = ROOT / "examples" / "demo_dataset.py"
DATA_DIR = "gs://${project}-datasets/tfds"  # in the demos' requests: where `delivered` uploads
MARKER = ".demo"  # a folder with this file was made by a demo, and may be emptied by one
DEADLINE_S = 600
UPLOADERS = 8
TITLE_CHARS = 16
START_POLL_S = 0.1
POLL_S = 1.0  # each look costs the services a fiftieth of a second, beside the training

S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A document in the inbox."""

    object_name: str
    generation: int
    at: datetime
    uri: str


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
    """What the demo of one dropped request shows beside what `trainmaster watch` does."""

    request: Path  # its data is at DATA_DIR
    data: tuple[str, ...]  # what examples/demo_dataset.py writes, as its options
    report: Callable[[Console, Sighting, Scene], int]  # the exit status: 0 if everything holds

    def run(self, state: Path, *, as_json: bool) -> int:
        """The exit status of the whole demo on an emptied `state`: 0 if everything it shows holds, else 1."""
        # Isolated replicas do not see folders of this machine.
        shown = ("--isolation", "none") if os.environ.get("TFDS_DATA_DIR") else ()
        return on_fresh_stack(state, self._play, *shown, as_json=as_json)

    def _play(self, console: Console, environment: Mapping[str, str], state: Path) -> tuple[int, Any]:
        target = context_of_stack(environment, state.absolute())
        real = os.environ.get("TFDS_DATA_DIR")
        data_dir = (
            str(Path(real).resolve())
            if real
            else delivered(console, target, write_dataset(console, state / "dataset", *self.data))
        )
        request = self.request.read_text()
        if real:
            request = request.replace(DATA_DIR, data_dir)
        show_document(console, "The request", request)
        with Clients(target) as clients:
            seen = _watched(console, clients, drop(target, f"requests/{self.request.name}", request))
        return self.report(
            console, seen, Scene(target=target, state=state, data_dir=data_dir)
        ), seen.run.document


def _watched(console: Console, clients: Clients, dropped: Dropped) -> Sighting:
    """The run that the dropped request started, at its end; shown as `trainmaster watch` shows it.

    Raises:
        DemoFailed: no run was started, or it had not ended, after DEADLINE_S seconds.
    """
    deadline = time.monotonic() + DEADLINE_S
    with doing(console, "The upload's event is on its way to on_request_uploaded"):
        while (run := _run_of(clients, dropped)) is None:
            if time.monotonic() > deadline:
                raise DemoFailed(f"{dropped.uri} started no run within {DEADLINE_S} s.")
            time.sleep(START_POLL_S)
    view = View(console, picture=run_picture, news=run_news, doing=run_doing)
    watched = RunWatch(clients, run)
    with view.running():
        for seen in look_until_over(clients.context, watched):
            view.show(seen)
            if time.monotonic() > deadline:
                raise DemoFailed(f"Timed out after {DEADLINE_S} s. Last seen: {run_doing(seen)}.")
    return seen


def _run_of(clients: Clients, dropped: Dropped) -> Run | None:
    """The run that this generation of the object started; None until there is one."""
    status = read_document(clients, status_object(dropped.object_name)) or {}
    if status.get("generation") != dropped.generation or "run_id" not in status:
        return None
    return find_run(clients, status["run_id"])


def on_fresh_stack(
    state: Path,
    play: Callable[[Console, Mapping[str, str], Path], tuple[int, Any]],
    *arguments: str,
    as_json: bool,
) -> int:
    """The exit status of `play` beside a stack, started with `arguments`, on the emptied `state`; 1 if it failed.

    Args:
        state: the stack's folder.
        play: returns the status and what `as_json` prints.
        arguments: of `trainmaster up`.
        as_json: print JSON on standard output, and everything else on standard error.
    """
    console = Console(stderr=as_json)
    try:
        fresh(state)
        with ExitStack() as stack:
            with doing(console, "Starting the local stack"):
                log = state.parent / f"{state.name}.log"
                environment = stack.enter_context(local_stack(state, log, ["--console", "off", *arguments]))
            status, document = play(console, environment, state)
            stopping = stack.pop_all()
        with doing(console, "Stopping the local stack"):
            stopping.close()
    except (DemoFailed, StackFailed) as problem:
        console.print(str(problem), style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    if as_json:
        print_data(document, JSON)
    return status


def run_facts(seen: Sighting, scene: Scene) -> dict[str, str]:
    """Of the run, its job and its record."""
    record = seen.run.record
    took_s = (record.history[-1].at - record.source.event_time).total_seconds()
    return {
        "Run": f"{record.run_id}: {record.state} in {took_s:.1f} s",
        "Job": seen.job_name or "none",
        "Record": object_uri(scene.target.ledger_bucket, record_object(record.run_id)),
    }


def summary(console: Console, facts: Mapping[str, str]) -> None:
    """The end of a demo: one fact a line, whole."""
    console.rule("Summary", align="left")
    for title, fact in facts.items():
        line = Text(f"{title:<{TITLE_CHARS}}", style="bold").append(one_line(fact), style="default")
        console.print(line, soft_wrap=True)


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


def write_dataset(console: Console, folder: Path, *options: str) -> Path:
    """The TFDS data directory `folder`, with the small data set as the options say.

    Raises:
        DemoFailed: it could not be written.
    """
    command = [sys.executable, str(DATASET_WRITER), "--data_dir", str(folder), *options]
    with doing(console, "Writing the data set"):
        written = subprocess.run(command, check=False, capture_output=True, text=True)
    if written.returncode != 0:
        raise DemoFailed(f"The demo's data set could not be written.\n{written.stderr}")
    return folder


def delivered(console: Console, target: Context, folder: Path) -> str:
    """The URI of the data directory, uploaded to a new bucket, which no rule watches."""
    bucket = storage_client(target).create_bucket(f"{target.project}-datasets")
    with doing(console, "Uploading the data set"):
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
