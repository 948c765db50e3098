"""Replicas of one cluster as the service would start them, each through trainer.launch."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import run_to_end

ROOT = Path(__file__).resolve().parents[2]
POOLS = ("workerpool0", "workerpool1", "workerpool2", "workerpool3")
TELL = "import json, os, sys; print(json.dumps([os.getpid(), sys.argv[1:], dict(os.environ)]))"
BARE = {"PATH": os.environ["PATH"]}
ENDS_WITHIN_S = 60


def spec(counts: Sequence[int], pool: int = 0, index: int = 0, job: object = None) -> dict[str, str]:
    """CLUSTER_SPEC of one replica of pools of these sizes, as Vertex AI names hosts."""
    hosts = {
        POOLS[number]: [f"{POOLS[number]}-{each}:2222" for each in range(count)]
        for number, count in enumerate(counts)
        if count
    }
    return spec_of(hosts, POOLS[pool], index, job)


def spec_of(
    members: Mapping[str, Sequence[str]], task_type: str, index: int, job: object = None
) -> dict[str, str]:
    task = {"type": task_type, "index": index, "trial": ""}
    return {
        "CLUSTER_SPEC": json.dumps(
            {"cluster": members, "environment": "cloud", "task": task, "job": job or {}}
        )
    }


def launch(
    *arguments: str,
    environment: Mapping[str, str],
    python: Sequence[str] = (sys.executable,),
    folder: Path = ROOT,
) -> "subprocess.CompletedProcess[str]":
    """`python -m trainer.launch` run to its end, with the package `trainer` of this folder."""
    return run_to_end(
        [*python, "-m", "trainer.launch", *arguments],
        cwd=folder,
        env={**BARE, **environment},
        timeout=ENDS_WITHIN_S,
    )


def told(framework: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that a command finds, without what every command here has."""
    done = launch("--framework", framework, "--", sys.executable, "-c", TELL, environment=environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)[2]
    return {name: value for name, value in found.items() if name not in {*BARE, "LC_CTYPE"}}


@contextmanager
def started(
    *arguments: str, environment: Mapping[str, str], **options: Any
) -> Iterator["subprocess.Popen[str]"]:
    """`python -m trainer.launch` while it runs; ended and reaped at the end. Any: Popen's own options."""
    process = subprocess.Popen(
        [sys.executable, "-m", "trainer.launch", *arguments],
        cwd=ROOT,
        env={**BARE, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
