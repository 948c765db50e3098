"""The tree that a build in the cloud works on: what `gcloud builds submit` uploads of this one."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from .files import ROOT, project_files

NOT_UPLOADED = (".gcloudignore", ".git", ".gitignore")
"""gcloud leaves out these and what .gitignore names, which project_files() leaves out, too.

Source: DEFAULT_IGNORE_FILE of googlecloudsdk/command_lib/util/gcloudignore.py in gcloud 528.
"""


def uploaded_files() -> Iterator[str]:
    """What gcloud's source says, for machines without gcloud."""
    return (path for path in project_files() if path not in NOT_UPLOADED)


def listed_by_gcloud(config: Path) -> list[str]:
    """What gcloud itself says, with its settings in the folder `config`.

    Raises:
        FileNotFoundError: gcloud is not on the path.
    """
    command = ["gcloud", "meta", "list-files-for-upload", str(ROOT)]
    environment = {**os.environ, "CLOUDSDK_CONFIG": str(config)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return sorted(done.stdout.splitlines())


def copy_uploaded(destination: Path, config: Path) -> None:
    """Put the files that would be uploaded into a folder, by gcloud's word where gcloud is on the path."""
    has_gcloud = shutil.which("gcloud") is not None
    for name in listed_by_gcloud(config) if has_gcloud else uploaded_files():
        path = destination / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, path)
