"""Runs a Python program in a confinement as an enforcing stack does: `python confined.py FOLDER PROGRAM PATH…`.

A separate process, because a test also starts it as another user. FOLDER is new and belongs to that user; its folder
`bucket` is /gcs/bucket for the program, whose arguments are the paths. Ends as the program does.
"""

import marshal
import os
import subprocess
import sys
from pathlib import Path

from trainstack.jobs.images.dockerfile import DockerfileImage
from trainstack.jobs.replicas import rootfs
from trainstack.sandbox.network import open_network
from trainstack.sandbox.probe import LAUNCHER


def main(folder: Path, program: str, *arguments: str) -> int:
    for name in ("buckets/bucket", "home", "tmp", "root", "state"):
        (folder / name).mkdir(parents=True)
    network = open_network([])
    namespaces = [network.user, network.net]
    view = rootfs.ReplicaView(
        buckets=folder / "buckets",
        shares=(rootfs.BucketShare(path="bucket", writable=True),),
        read_only=(Path(sys.prefix), Path(sys.base_prefix).resolve(), Path(sys.executable).resolve().parents[1]),
        writable=(folder / "home",),
        tmp=folder / "tmp",
        hidden=folder / "state",
    )  # fmt: skip
    plan = {
        "private": True,
        "root": str(folder / "root"),
        "steps": rootfs.confined_steps(DockerfileImage(tree=folder), view),
        "workdir": str(folder / "home"),
        "argv": [sys.executable, "-c", program, *arguments],
        "grace_s": 1,
        "stack": os.getpid(),
        "name": f"trainmaster-test-{os.getpid()}",
        "network": namespaces,
    }
    (folder / "plan").write_bytes(marshal.dumps(plan))
    words = [sys.executable, "-I", "-S", str(LAUNCHER), str(folder / "plan")]
    return subprocess.run(words, pass_fds=namespaces, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
