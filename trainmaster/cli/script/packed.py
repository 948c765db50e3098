"""Uploads a script's archive, and reports what is not in it and where it is."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainmaster.cli.verb import talk
from trainmaster.client.terminal import one_line, size_text

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


def upload_script(clients: "Clients", packed: "Packed", team: str | None) -> None:
    """Say what the archive lacks, upload it unless it is there already, and say where it is."""
    from trainmaster.client.submission.send import send_script

    for why, names in packed.left_out.items():
        more = f" and {len(names) - LEFT_OUT_SHOWN} more" if len(names) > LEFT_OUT_SHOWN else ""
        talk(f"Not packed, because {why}: {', '.join(map(one_line, names[:LEFT_OUT_SHOWN]))}{more}")
    for line in size_warnings(packed):
        talk(line)
    uri, is_new = send_script(clients, packed, team)
    count = len(packed.files)
    talk(f"{'Uploaded' if is_new else 'Already there:'} {count} file{'' if count == 1 else 's'} as {uri}")
