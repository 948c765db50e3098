"""`trainmaster init`: a request and a script to start from."""

import shlex
from pathlib import Path

import click

from trainmaster.cli.exits import Exit, Stop
from trainmaster.cli.verb import print_names, talk
from trainmaster.resources import ROOT

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
                file.write((STARTER / path.name).read_bytes())
    except OSError as error:
        raise Stop(Exit.USAGE, f"Cannot write to {str(folder)!r}: {error.strerror or error}") from error
    print_names(map(str, targets))
    request, script = (shlex.quote(str(path)) for path in targets)
    talk(f"Next:\n  trainmaster up --detach\n  trainmaster submit {request} --script {script} --logs")
    return Exit.DONE
