"""`trainmaster download`: the model of a run, as files on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmaster.cli.exits import Exit, Stop
from trainmaster.cli.verb import print_names, takes_context, talk
from trainmaster.client.study.study import plural
from trainmaster.client.terminal import one_line, size_text

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.files.listing import RemoteFile
    from trainmaster.client.find import Run

CHAMPION = "champion:"


@click.command()
@click.argument("run")
@click.argument("folder", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option(
    "--all", "everything", is_flag=True, help="everything below the run's output, not only its model"
)
@click.option("--force", is_flag=True, help="replace files that differ")
@takes_context
def download(clients: "Clients", run: str, folder: Path | None, *, everything: bool, force: bool) -> int:
    """Download the model of RUN into DIR, by default a folder with the run's id, and verify every file.

    RUN is a run's id, the file that started it, the id or key of a message, or champion:MODEL. Sizes and checksums are
    compared with the run's record. A file that exists is kept if it is the same; if it differs, nothing is downloaded
    without --force. After an interruption, the same command continues.

    Exit status: 0; 1 an object is not what the record lists; 2 refused; 3 there is no such run, or it has no model.
    """
    from trainmaster.client.files.download import download as download_files

    found = _find(clients, run)
    files = _wanted(clients, found, everything=everything)
    target = folder or Path(found.record.run_id)
    size = size_text(sum(file.size_bytes for file in files))
    talk(f"Downloading {plural(len(files), 'file')}, {size}, of {found.record.run_id} to {target}.")
    try:
        download_files(clients, files, target, overwrite=force)
    except OSError as error:
        if error.filename is None:
            raise
        raise Stop(Exit.USAGE, f"Cannot write {error.filename!r}: {error.strerror or error}") from error
    print_names(one_line(str(target / file.path)) for file in files)
    talk("Every size and checksum matches.")
    if not everything:
        talk(
            f"For all that the run wrote, not only its model: trainmaster download --all {found.record.run_id}"
        )
    return Exit.DONE


def _find(clients: "Clients", text: str) -> "Run":
    from trainmaster.client.errors import NotFound
    from trainmaster.client.find import find_run
    from trainmaster.client.rules.champions import find_champion

    if not text.startswith(CHAMPION):
        return find_run(clients, text)
    model_name = text.removeprefix(CHAMPION)
    current = find_champion(clients, model_name).champion.current
    if current is None:
        raise NotFound(f"{model_name!r} has no champion yet: trainmaster champions show {model_name}")
    return find_run(clients, current.run_id)


def _wanted(clients: "Clients", run: "Run", *, everything: bool) -> "list[RemoteFile]":
    from trainmaster.client.errors import NotFound
    from trainmaster.client.files.listing import model_files, objects_below

    if not everything:
        return model_files(clients, run)
    output_uri = run.record.output_uri
    files = objects_below(clients, output_uri) if output_uri else []
    if not files:
        raise NotFound(
            f"{run.record.run_id} has written nothing below {output_uri or 'its output, which it lacks'}."
        )
    return files
