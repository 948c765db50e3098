"""`trainmaster download`: the model of a run, as files on this machine."""

import shlex
from itertools import islice
from pathlib import Path

import click

from trainmaster.cli.exits import ExitStatus, Stop, why_unwritable
from trainmaster.cli.verb import print_names, takes_context, talk
from trainmaster.client.clients import Clients
from trainmaster.client.errors import NotFound
from trainmaster.client.files.download import download as download_files
from trainmaster.client.files.download import false_claims
from trainmaster.client.files.listing import RemoteFile, champion_files, model_files, objects_below
from trainmaster.client.find import Run, find_run
from trainmaster.client.rules.champions import find_reigning
from trainmaster.client.terminal import one_line, plural, size_text

CHAMPION = "champion:"
CLAIMS_SHOWN = 10


@click.command()
@click.argument("run")
@click.argument("folder", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option(
    "--all", "everything", is_flag=True, help="everything below the run's output, not only its model"
)
@click.option("--force", is_flag=True, help="replace files that differ")
@takes_context
def download(clients: Clients, run: str, folder: Path | None, *, everything: bool, force: bool) -> int:
    """Download the model of RUN into DIR, by default a folder with the run's id, and verify every file.

    RUN is a run's id or its last part, latest, the file that started it, the id or key of a message, or champion:MODEL, for the copy that no job
    can change. Generations, sizes and checksums are compared with what the run recorded when it ended. A file
    that exists is kept if it is the same; if it differs, nothing is downloaded without --force. After an
    interruption, the same command continues.

    Exit status: 0; 1 an object is not what the record lists, or the model's manifest is wrong about a file; 2
    refused; 3 there is no such run, or it has no model.
    """
    run_id, files = _files_to_download(clients, run, everything=everything)
    target = folder or Path(run_id)
    size = size_text(sum(file.size_bytes for file in files))
    beside = [one_line(file.path) for file in files if file.is_beside_model]
    of_model = plural(len(files) - len(beside), "file")
    and_beside = f" Beside the model's {of_model}: {', '.join(beside)}." if beside else ""
    talk(f"Downloading {plural(len(files), 'file')}, {size}, of {run_id} to {target}.{and_beside}")
    try:
        download_files(clients, files, target, overwrite=force)
    except OSError as error:
        if error.filename is None:
            raise
        raise Stop(ExitStatus.USAGE, f"Cannot write {error.filename!r}: {why_unwritable(error)}") from error
    print_names(one_line(str(target / file.path)) for file in files)
    talk("Every size and checksum matches the record.")
    if not everything:
        talk(f"For all that the run wrote, not only its model: trainmaster download --all {run_id}")
    false = list(islice(false_claims(files, target), CLAIMS_SHOWN)) if not everything else []
    for each in false:
        talk(
            f"The model's manifest is wrong about {one_line(each)}. What was downloaded is what the run left."
        )
    return ExitStatus.FINDING if false else ExitStatus.DONE


def _files_to_download(clients: Clients, text: str, *, everything: bool) -> tuple[str, list[RemoteFile]]:
    """The run's id, and the files of its model; of a champion, those of its copy."""
    if text.startswith(CHAMPION):
        _, reign = find_reigning(clients, text.removeprefix(CHAMPION))
        if not everything:
            return reign.run_id, champion_files(clients, reign)
        text = reign.run_id
    try:
        run = find_run(clients, text)
    except NotFound as unknown:
        raise NotFound(f"{unknown}{_champion_hint(clients, text)}") from unknown
    files = _all_files(clients, run) if everything else model_files(clients, run)
    return run.record.run_id, files


def _champion_hint(clients: Clients, text: str) -> str:
    """How to download the champion of that name, if there is one."""
    if set(text) & set("./"):
        return ""
    try:
        find_reigning(clients, text)
    except NotFound:
        return ""
    return f"\nThe champion of that name: trainmaster download {shlex.quote(CHAMPION + text)}"


def _all_files(clients: Clients, run: Run) -> list[RemoteFile]:
    output_uri = run.record.output_uri
    files = objects_below(clients, output_uri) if output_uri else []
    if not files:
        raise NotFound(
            f"{run.record.run_id} has written nothing below {output_uri or 'its output, which it lacks'}."
        )
    return files
