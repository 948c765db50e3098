"""Seeded random SIGKILLs of functions, replicas and the whole stack, while uploads arrive and jobs run."""

import contextlib
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest

from trainmaster.local.process.family import members

from .project import ENDED, Project, eventually, nothing_left, running_project
from .proxied import quick_topology
from .reckoning import (
    STUB,
    Upload,
    count_files,
    custom_jobs,
    reckoning,
    stub_request,
    stub_uri,
)

pytestmark = [pytest.mark.slow(seconds=80), pytest.mark.timeout(900)]

SEED = 20261121
COUNT, LATE = 8, 3
"""Requests per start of the stack, and how many of them arrive just before it is killed."""
DEADLINE_S = 400  # several leases, on a shared machine
FUNCTION, REPLICA = "K_SERVICE", "CLOUD_ML_JOB_ID"
NO_PROCESS = "nobody"
HONEST_ENDS = ("succeeded", "failed")


def flags(folder: Path, project_id: str) -> tuple[str, ...]:
    return (
        "--topology", str(quick_topology(folder)), "--image", f"{stub_uri(project_id)}={STUB}",
        "--retry-min-s", "0.5", "--retry-max-s", "3", "--tick-s", "2",
    )  # fmt: skip


def living(token: str, variable: str) -> list[tuple[psutil.Process, str]]:
    """The stack's processes that have this variable, with its value, by age, so that a seed can choose among them."""
    found = []
    for pid in sorted(members(token)):
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            # Read once: a process that ends meanwhile shows an empty environment before it is gone.
            if (value := process.environ().get(variable)) is not None:
                found.append((process, value))
    return found


def kill_one(token: str, variable: str, chance: random.Random) -> str | None:
    """What was killed: a function's name or a job's id; None if no such process exists."""
    with contextlib.suppress(psutil.Error):  # it has just ended by itself
        if victims := living(token, variable):
            victim, name = chance.choice(victims)
            victim.kill()
            return name
    return None


def dropped(project: Project, numbers: Sequence[int], *args: str) -> None:
    """Requests as files in the bucket's folder, which also works while no stack runs."""
    for number in numbers:
        project.drop(f"requests/load-{number:03d}.yaml", stub_request(project.id, *args))


def uploads_of(project: Project) -> list[Upload]:
    """Every request in the bucket."""
    blobs = project.storage.list_blobs(project.inbox, prefix="requests/")
    return [
        Upload(name=blob.name, generation=int(blob.generation), ends=HONEST_ENDS)
        for blob in blobs
        if blob.name.endswith(".yaml")
    ]


def on_record(project: Project, count: int) -> bool:
    return count_files(project, "runs") >= count


def all_ended(project: Project, count: int) -> bool:
    return on_record(project, count) and count_files(project, "active") == 0


def check(project: Project, count: int) -> None:
    """Each upload has one ended record, each run one job, and the record agrees with the job."""
    uploads = uploads_of(project)
    assert len(uploads) == count
    found = reckoning(project, uploads)
    assert found.kept, found
    states = {job.name: job.state.name for job in custom_jobs(project)}
    for record in project.records().values():
        assert record["state"] in ENDED
        state = states[record["job"]["name"]]
        assert state.removeprefix("JOB_STATE_").lower() == record["state"], record
        assert record["state"] == "succeeded" or record["failure"]["message"], record


def victim_or_end(
    project: Project, token: str, variable: str, chance: random.Random, count: int
) -> str | None:
    """What was killed, or NO_PROCESS if all runs ended before there was any such process."""
    return kill_one(token, variable, chance) or (NO_PROCESS if all_ended(project, count) else None)


def strike(
    project: Project, token: str, variables: Sequence[str], chance: random.Random, count: int
) -> set[str]:
    """Kill one process for each variable while any of the `count` runs is active; returns the variables that had one."""
    killed = set()
    for variable in variables:
        victim = partial(victim_or_end, project, token, variable, chance, count)
        if project.eventually(victim, f"a victim with {variable}", deadline_s=DEADLINE_S) != NO_PROCESS:
            killed.add(variable)
    return killed


def test_killed_functions_replicas_and_stacks_lose_and_duplicate_nothing(tmp_path: Path) -> None:
    lives, chance, killed = 2, random.Random(SEED), set[str]()
    # A replica lives only after functions have worked: the mixture is what spreads the kills over the whole load.
    planned = [FUNCTION, REPLICA] * 4
    chance.shuffle(planned)
    state, arguments = tmp_path / "state", flags(tmp_path, "e2e-load")
    for life in range(lives):
        first, late, count = (life * COUNT + n for n in (0, COUNT - LATE, COUNT))
        with running_project(state, *arguments, project="e2e-load") as project:
            token = project.token()
            dropped(project, range(first, late), "0.5")
            killed |= strike(project, token, planned[life::lives], chance, late)
            # So that there is a load when the whole stack is killed.
            dropped(project, range(late, count), "1.5")
            on_their_way = partial(on_record, project, late + chance.randrange(1, LATE))
            project.eventually(on_their_way, "some of the last are on record", deadline_s=DEADLINE_S)
            project.process.kill()
            project.process.wait()
            eventually(partial(nothing_left, token), "no process of the stack is left")
    assert killed == {FUNCTION, REPLICA}
    with running_project(state, *arguments, project="e2e-load") as project:
        token = project.token()
        count = lives * COUNT
        project.eventually(lambda: all_ended(project, count), "all runs have ended", deadline_s=DEADLINE_S)
        check(project, count)
    eventually(partial(nothing_left, token), "no process of the stack is left")
