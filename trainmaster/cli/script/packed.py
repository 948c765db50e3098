"""Uploads a script's archive, and reports what is not in it and where it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.cli.verb import talk
from trainmaster.client.terminal import one_line, plural, size_text

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.submission.pack import Packed

LEFT_OUT_SHOWN = 5
"""Names for each reason why something is not packed."""


def size_warnings(packed: "Packed") -> Iterator[str]:
    """A line with the largest entries of a folder that holds more than a program usually takes."""
    from trainmaster.client.submission.pack import largest_text

    if packed.is_large:
        yield (
            f"warning: {size_text(sum(packed.sizes.values()))} are packed with the script; the largest entries: "
            f"{one_line(largest_text(packed.sizes))}. To leave out data and the results of earlier runs, name them in a "
            ".gitignore beside the script."
        )


def folder_notes(packed: "Packed", noted: set[Path]) -> Iterator[str]:
    """What a folder's archive lacks, and what takes most of it; nothing for the folders in `noted`, which it joins."""
    if packed.folder in noted:
        return
    noted.add(packed.folder)
    for why, names in packed.left_out.items():
        more = f" and {len(names) - LEFT_OUT_SHOWN} more" if len(names) > LEFT_OUT_SHOWN else ""
        yield f"Not packed, because {why}: {', '.join(map(one_line, names[:LEFT_OUT_SHOWN]))}{more}"
    yield from size_warnings(packed)


def upload_script(clients: "Clients", packed: "Packed", team: str | None, noted: set[Path]) -> None:
    """Print the notes on its folder, unless it is in `noted`, upload the archive if it is new, and say where it is."""
    from trainmaster.client.submission.send import send_script

    for line in folder_notes(packed, noted):
        talk(line)
    uri, is_new = send_script(clients, packed, team)
    talk(f"{'Uploaded' if is_new else 'Already there:'} {plural(len(packed.files), 'file')} as {uri}")
