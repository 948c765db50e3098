"""A stock Debian 12 or Ubuntu 24.04 with only the packages that the README names, and commands run in a clone there.

    python -m tests.repo.stock_machine FOLDER [--system ubuntu-24.04] [--env PIP_INDEX_URL]… [--file /etc/pip.conf]…
        [--] ['make demo' 'make test-fast' …]

Needs root and debootstrap. FOLDER gets the system's files, which the next run with this folder uses again; the clone,
of what is committed here, is new in each run. Commands see no file, program or variable of this machine but those
that `--file` and `--env` name: what its package index needs. They share its network and its processors.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLONE = "root/trainmaster"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# In separate namespaces, so that no mount and no process is left. The root is changed by pivot_root, because no
# process in a chroot may make user namespaces, in which the local stack confines what it runs.
ENTER = """
set -e
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount --rbind /sys "$0/sys"
mount --rbind /dev "$0/dev"
cd "$0"
mkdir -p .before
pivot_root . .before
umount --lazy /.before
exec "$@"
"""


@dataclass(frozen=True, kw_only=True)
class System:
    suite: str
    mirror: str
    keyring: str
    options: tuple[str, ...] = ()
    script: str = ""
    """debootstrap's, where older versions of it do not know the suite."""


SYSTEMS = {
    "debian-12": System(
        suite="bookworm",
        mirror="http://deb.debian.org/debian",
        keyring="/usr/share/keyrings/debian-archive-keyring.gpg",
    ),
    "ubuntu-24.04": System(
        suite="noble",
        mirror="http://archive.ubuntu.com/ubuntu",
        keyring="/usr/share/keyrings/ubuntu-archive-keyring.gpg",
        options=("--components=main,universe",),
        script="/usr/share/debootstrap/scripts/gutsy",
    ),
}


def named_packages() -> list[str]:
    """Those of the README's `apt-get install`."""
    (found,) = re.findall(r"`apt-get install ([^`]+)`", (ROOT / "README.md").read_text())
    return str(found).split()


def make_root(root: Path, system: System) -> None:
    """Unpack the system's smallest variant unless that was done before."""
    done = root / "var" / "lib" / "stock-machine"
    if done.exists():
        return
    command = ["debootstrap", "--variant=minbase", f"--keyring={system.keyring}", *system.options]
    where = [system.suite, str(root), system.mirror, *filter(None, [system.script])]
    subprocess.run([*command, *where], check=True)
    done.touch()


def copy_files_into(root: Path, *files: Path) -> None:
    """Copy files and folders of this machine to the same places below `root`."""
    for file in files:
        place = root / file.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        if file.is_dir():
            shutil.copytree(file, place, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy(file, place)


def run_inside(root: Path, command: str, environment: dict[str, str]) -> int:
    """Run a shell's command as root of the machine, and return its exit status."""
    namespaces = [
        "unshare",
        "--mount",
        "--pid",
        "--ipc",
        "--fork",
        "--kill-child",
        "--propagation",
        "private",
    ]
    started = time.monotonic()
    status = subprocess.call(
        [*namespaces, "sh", "-c", ENTER, str(root), "sh", "-c", command], env={"PATH": PATH, **environment}
    )
    sys.stdout.write(f"== {command}: exit status {status} after {time.monotonic() - started:.0f} s\n")
    sys.stdout.flush()
    return status


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="for the system's files, about 5 GB")
    parser.add_argument("commands", nargs="*", default=["make demo", "make test-fast"], metavar="COMMAND")
    parser.add_argument("--system", choices=SYSTEMS, default="debian-12")
    parser.add_argument("--mirror", help="of the system's packages")
    parser.add_argument("--keyring", help="that the mirror is signed with")
    parser.add_argument("--env", action="append", default=[], metavar="NAME", help="a variable to keep")
    parser.add_argument("--file", action="append", default=[], type=Path, help="an absolute path to copy")
    given = parser.parse_intermixed_args()
    chosen = SYSTEMS[given.system]
    system = replace(chosen, mirror=given.mirror or chosen.mirror, keyring=given.keyring or chosen.keyring)
    root = given.folder.resolve()
    make_root(root, system)
    copy_files_into(root, Path("/etc/resolv.conf"), Path("/etc/hosts"), *given.file)
    shutil.rmtree(root / CLONE, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(root / CLONE)], check=True)
    kept = {name: os.environ[name] for name in given.env if name in os.environ}
    environment = {"HOME": "/root", "LANG": "C.UTF-8", **kept}
    install = f"apt-get -qq update && apt-get -qq install {' '.join(named_packages())} >/dev/null"
    if status := run_inside(root, f"export DEBIAN_FRONTEND=noninteractive; {install}", environment):
        return status
    copy_files_into(root, *given.file)  # again: ca-certificates has written its own list of authorities
    commands = [f"cd /{CLONE} && {command}" for command in given.commands]
    return max(run_inside(root, each, environment) for each in commands)


if __name__ == "__main__":
    sys.exit(main())
