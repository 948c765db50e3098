"""`trainmaster init`: a request and a script to start from."""

import shlex
from contextlib import suppress
from pathlib import Path

import click

from trainmaster.cli.exits import Exit, Stop, why_unwritable
from trainmaster.cli.verb import print_names, talk
from trainmaster.resources import EDITOR_LINE, ROOT

FILES = ("request.yaml", "train.py")
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
    editors, unless DIR has them. An existing file is never overwritten: if DIR has request.yaml or train.py, nothing is
    written.
    """
    targets = [folder / name for name in FILES]
    existing = [str(path) for path in targets if path.exists() or path.is_symlink()]
    if existing:
        exist = "exists" if len(existing) == 1 else "exist"
        repair = "Choose another folder: trainmaster init DIR"
        raise Stop(Exit.USAGE, f"{' and '.join(existing)} already {exist}. {repair}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in targets:
            _write(path, _starter(path.name))
        for name, text in ((".gitignore", GIT_IGNORED), (SCHEMA, _schema())):
            with suppress(FileExistsError):
                _write(folder / name, text)
    except OSError as error:
        raise Stop(Exit.USAGE, f"Cannot write to {str(folder)!r}: {why_unwritable(error)}") from error
    print_names(map(str, targets))
    talk(f"Next:\n  trainmaster up --detach\n  trainmaster submit {shlex.quote(str(targets[0]))} --logs")
    return Exit.DONE


def _write(path: Path, text: str) -> None:
    with path.open("xb") as file:  # never over a file that was written meanwhile
        file.write(text.encode())


def _starter(name: str) -> str:
    """The starter's file; a line that names its schema to editors names the copy beside it."""
    text = (STARTER / name).read_text(encoding="utf-8")
    first, _, rest = text.partition("\n")
    return f"{EDITOR_LINE}{SCHEMA}\n{rest}" if first.startswith(EDITOR_LINE) else text


def _schema() -> str:
    return (ROOT / "schemas" / "training_request.v1.schema.json").read_text(encoding="utf-8")
