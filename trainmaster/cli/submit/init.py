"""`trainmaster init`: a request and a script to start from."""

import shlex
from pathlib import Path

import click

from trainmaster.cli.exits import Exit, Stop
from trainmaster.cli.verb import print_names, talk
from trainmaster.resources import EDITOR_LINE, ROOT, editor_line

FILES = ("request.yaml", "train.py")
STARTER = ROOT / "examples" / "starter"


@click.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path), default=".")
def init(folder: Path) -> int:
    """Write request.yaml and train.py into DIR, by default the current folder, to start from.

    An existing file is never overwritten: if DIR has either of the two, nothing is written.
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
            with path.open("xb") as file:  # never over a file that was written meanwhile
                file.write(_starter(path.name, folder).encode())
    except OSError as error:
        raise Stop(Exit.USAGE, f"Cannot write to {str(folder)!r}: {error.strerror or error}") from error
    print_names(map(str, targets))
    request, script = (shlex.quote(str(path)) for path in targets)
    talk(f"Next:\n  trainmaster up --detach\n  trainmaster submit {request} --script {script} --logs")
    return Exit.DONE


def _starter(name: str, folder: Path) -> str:
    """The starter's file; a line that names its schema to editors names it from `folder`."""
    text = (STARTER / name).read_text(encoding="utf-8")
    first, _, rest = text.partition("\n")
    return f"{editor_line('training_request.v1', folder)}\n{rest}" if first.startswith(EDITOR_LINE) else text
