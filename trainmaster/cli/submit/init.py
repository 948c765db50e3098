"""`trainmaster init`: a request and a script to start from."""

import re
import shlex
from contextlib import suppress
from pathlib import Path

import click

from trainmaster.cli.exits import ExitStatus, Stop, why_unwritable
from trainmaster.cli.submit.first_commands import REQUEST, SCRIPT
from trainmaster.cli.verb import print_names, talk
from trainmaster.client.context import settings_folder
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.resources import EDITOR_LINE, ROOT
from trainstack.find import is_of, running_stacks

STARTER = ROOT / "examples" / "starter"
SCHEMA = ".request.schema.json"
"""A copy beside the request, by which editors check it: it works in every clone of the project."""
GIT_IGNORED = ".trainmaster/\n__pycache__/\n/checkpoints/\n/model/\n"
"""The local stack's state, and what the script and `trainmaster download FILE model` write."""


@click.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path), default=".")
def init(folder: Path) -> int:
    """Write request.yaml and train.py into DIR, by default the current folder, to start from.

    Beside them it writes .gitignore, which also keeps results out of what submit uploads, and the request's schema for
    editors, unless DIR has them. If DIR has a train.py, only a request that runs it is written, with the schema. An
    existing file is never overwritten: if DIR has request.yaml, nothing is written.
    """
    request, script = folder / REQUEST, folder / SCRIPT
    has_script = script.is_file()
    existing = [each for each in (request, script) if each.exists() or each.is_symlink()]
    if existing and existing != [script] * has_script:
        exist = "exists" if len(existing) == 1 else "exist"
        repair = "Choose another folder: trainmaster init DIR"
        raise Stop(ExitStatus.USAGE, f"{' and '.join(map(str, existing))} already {exist}. {repair}")
    written = (
        {request: _request_of(folder)}
        if has_script
        else {each: _starter(each.name) for each in (request, script)}
    )
    schema = (ROOT / "schemas" / "training_request.v1.schema.json").read_text(encoding="utf-8")
    beside = {SCHEMA: schema, **({} if has_script else {".gitignore": GIT_IGNORED})}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in written.items():
            _write(path, text)
        for name, text in beside.items():
            with suppress(FileExistsError):
                _write(folder / name, text)
    except OSError as error:
        raise Stop(ExitStatus.USAGE, f"Cannot write to {str(folder)!r}: {why_unwritable(error)}") from error
    print_names(map(str, written))
    if has_script:
        talk(
            f"The request runs your {script}, which was not changed. Give the script's arguments in the request."
        )
    stacks = running_stacks(Path.cwd(), settings_folder())
    start = "" if any(is_of(each, Path.cwd()) for each in stacks) else "\n  trainmaster up --detach"
    talk(f"Next:{start}\n  trainmaster submit {shlex.quote(str(request))} --logs")
    return ExitStatus.DONE


def _write(path: Path, text: str) -> None:
    with path.open("xb") as file:  # never over a file that was written meanwhile
        file.write(text.encode())


def _starter(name: str) -> str:
    """The starter's file; a line that names its schema to editors names the copy beside it."""
    text = (STARTER / name).read_text(encoding="utf-8")
    first, _, rest = text.partition("\n")
    return f"{EDITOR_LINE}{SCHEMA}\n{rest}" if first.startswith(EDITOR_LINE) else text


def _request_of(folder: Path) -> str:
    """The starter's request for a script that is there: the model named after the folder, the rest of it comments.

    The script may take no arguments, and may report no metric that a champion needs.
    """
    text = _starter(REQUEST).replace("starter", model_name_from(folder.resolve().name))
    return re.sub(r"^(args|champion):", r"# \1:", text, flags=re.MULTILINE)
