"""SIGKILL at random, from a seed, to functions, to replicas and to the whole stack, while uploads come and jobs run."""

import contextlib
import random
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest

from trainmaster.local.process.family import members

from .project import ENDED, Project, eventually, nothing_left, running_project
from .proxied import quick_topology
from .reckoning import STUB, Upload, custom_jobs, files_in, reckoning, records_on_disk, stub_request, stub_uri

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SEED = 20261121
DEADLINE_S = 400  # several leases, on a machine that others use too
FUNCTION, REPLICA = "K_SERVICE", "CLOUD_ML_JOB_ID"
NOBODY = "nobody"
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
    """What was killed: a function's name or a job's id; None when there is nobody."""
    with contextlib.suppress(psutil.Error):  # it has just ended by itself
        if victims := living(token, variable):
            victim, name = chance.choice(victims)
            victim.kill()
            return name
    return None


def dropped(project: Project, numbers: Sequence[int], *args: str) -> None:
    """Requests as files in the bucket's folder, which takes them also while no stack runs."""
    for number in numbers:
        project.drop(f"requests/load-{number:03d}.yaml", stub_request(project.id, *args))


def uploads_of(project: Project) -> list[Upload]:
    """Every request as the bucket has it."""
    blobs = project.storage.list_blobs(project.inbox, prefix="requests/")
    return [
        Upload(name=blob.name, generation=int(blob.generation), ends=HONEST_ENDS)
        for blob in blobs
        if blob.name.endswith(".yaml")
    ]


def on_record(project: Project, count: int) -> bool:
    return files_in(project, "runs") >= count


def all_ended(project: Project, count: int) -> bool:
    return on_record(project, count) and files_in(project, "active") == 0


def check(project: Project, count: int) -> None:
    """Each upload has one record that has ended, each run one job, and the record says of it what the job says."""
    uploads = uploads_of(project)
    assert len(uploads) == count
    found = reckoning(project, uploads)
    assert found.kept, found
    states = {job.name: job.state.name for job in custom_jobs(project)}
    for record in records_on_disk(project):
        assert record["state"] in ENDED
        state = states[record["job"]["name"]]
        assert state.removeprefix("JOB_STATE_").lower() == record["state"], record
        assert record["state"] == "succeeded" or record["failure"]["message"], record


def test_killed_functions_and_replicas_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    count, chance = 20, random.Random(SEED)
    # A replica lives only after functions have worked: the mixture is what spreads the kills over the whole load.
    planned = [FUNCTION, REPLICA] * 6
    chance.shuffle(planned)
    with running_project(tmp_path / "state", *flags(tmp_path, "e2e-load"), project="e2e-load") as project:
        token, killed = project.token(), Counter[str]()
        dropped(project, range(count), "0.5")
        for variable in planned:
            victim = partial(victim_or_end, project, token, variable, chance, count)
            if project.eventually(victim, f"a victim with {variable}", deadline_s=DEADLINE_S) != NOBODY:
                killed[variable] += 1
        project.eventually(lambda: all_ended(project, count), "all runs have ended", deadline_s=DEADLINE_S)
        assert killed[FUNCTION] > 0
        assert killed[REPLICA] > 0
        check(project, count)
    eventually(partial(nothing_left, token), "no process of the stack is left")


def victim_or_end(
    project: Project, token: str, variable: str, chance: random.Random, count: int
) -> str | None:
    """What was killed, NOBODY when all have ended before there was anybody."""
    return kill_one(token, variable, chance) or (NOBODY if all_ended(project, count) else None)


def test_a_stack_killed_again_and_again_under_load_goes_on_where_it_was(tmp_path: Path) -> None:
    count, lives, chance = 12, 2, random.Random(SEED)
    state, arguments = tmp_path / "state", flags(tmp_path, "e2e-lives")
    for life in range(lives):
        with running_project(state, *arguments, project="e2e-lives") as project:
            token = project.token()
            dropped(project, range(life * count // lives, (life + 1) * count // lives), "1.5")
            seen = chance.randrange(1, count // lives) + life * count // lives
            project.eventually(partial(on_record, project, seen), f"{seen} records", deadline_s=DEADLINE_S)
            project.process.kill()
            project.process.wait()
            eventually(partial(nothing_left, token), "no process of the stack is left")
    with running_project(state, *arguments, project="e2e-lives") as project:
        token = project.token()
        project.eventually(lambda: all_ended(project, count), "all runs have ended", deadline_s=DEADLINE_S)
        check(project, count)
    eventually(partial(nothing_left, token), "no process of the stack is left")
