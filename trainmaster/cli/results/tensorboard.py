"""`trainmaster tensorboard`: the logs that a run wrote for TensorBoard."""

import contextlib
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmaster.cli.exits import ExitStatus, Stop
from trainmaster.cli.verb import print_names, takes_context, talk
from trainmaster.client.errors import NotFound
from trainmaster.client.files.download import download
from trainmaster.client.files.listing import RemoteFile, objects_below
from trainmaster.client.find import Run, find_run
from trainmaster.client.runs.facts import is_tuning
from trainmaster.client.terminal import plural

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

INSTALL = "Install TensorBoard to see it: pip install tensorboard"
STOP_S = 10
EVENTS = "tfevents"
"""In the name of every file that TensorBoard reads.

Source: https://github.com/tensorflow/tensorboard/blob/master/tensorboard/backend/event_processing/io_wrapper.py, read 2026-11.
"""


@click.command()
@click.argument("run")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=6006, show_default=True, help="0: any free one"
)
@click.option("--uri", "only_uri", is_flag=True, help="print where the logs are, and start nothing")
@takes_context
def tensorboard(clients: "Clients", run: str, *, port: int, only_uri: bool) -> int:
    """Run TensorBoard on what RUN has written to AIP_TENSORBOARD_LOG_DIR, until Ctrl-C.

    The logs are downloaded to a temporary folder as they are now; a tuning has a folder for each trial.

    Exit status: 0; 2 TensorBoard is not installed; 3 there is no such run, or it has written no logs.
    """
    found = find_run(clients, run)
    output_uri = found.record.output_uri
    if output_uri is None:
        raise NotFound(f"{found.record.run_id} is {found.record.state}: it never had an output.")
    if only_uri:
        print_names(_log_uris(found, output_uri))
        return ExitStatus.DONE
    files = _event_files(clients, output_uri)
    if not files:
        raise NotFound(
            f"{found.record.run_id} has written no TensorBoard logs below {output_uri}. "
            "A program writes them to the folder that AIP_TENSORBOARD_LOG_DIR names."
        )
    if find_spec("tensorboard") is None:
        print_names(_log_uris(found, output_uri))
        raise Stop(ExitStatus.USAGE, INSTALL)
    folder = Path(tempfile.mkdtemp(prefix="trainmaster-tensorboard-"))
    try:
        size_mb = sum(file.size_bytes for file in files) / 1e6
        talk(f"Downloading {plural(len(files), 'file')}, {size_mb:.1f} MB, of {found.record.run_id}.")
        download(clients, files, folder)
        talk("Stop TensorBoard with Ctrl-C.")
        return _serve(folder, port)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _log_uris(run: Run, output_uri: str) -> list[str]:
    """AIP_TENSORBOARD_LOG_DIR of the job, or of each trial; before the trials are on record, the folder above all of them.

    Source: https://cloud.google.com/vertex-ai/docs/training/code-requirements
    """
    if not is_tuning(run.record):
        return [f"{output_uri}/logs/"]
    if run.record.tuning is None:
        return [f"{output_uri}/"]
    return [f"{output_uri}/{trial.id}/logs/" for trial in run.record.tuning.trials]


def _event_files(clients: "Clients", output_uri: str) -> list[RemoteFile]:
    found = objects_below(clients, output_uri)
    return [file for file in found if EVENTS in file.path.rpartition("/")[2]]


def _serve(folder: Path, port: int) -> int:
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--port", str(port)]
    process = subprocess.Popen(command)
    try:
        return ExitStatus.DONE if process.wait() == 0 else ExitStatus.FINDING
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            process.kill()
            process.wait()
