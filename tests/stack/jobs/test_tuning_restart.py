"""A study whose stack ends, politely or not, continues where it stopped."""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import stand_alone
from .studies import ended, study


@pytest.mark.slow
def test_a_killed_stack_runs_no_ended_trial_again_and_leaves_no_measurement_twice(
    tmp_path: Path, start: Callable[..., Any]
) -> None:
    body = (
        "with open(buckets / 'b' / 'ran', 'a') as file: file.write(f'{trial} ')\n"
        "report(x, 1)\n"
        "if trial > 2: wait('b/go')\n"
        "report(x / 2, 2); report(x / 3, 3)"
    )
    (tmp_path / "buckets" / "b").mkdir(parents=True)
    with stand_alone(tmp_path) as (process, stack):
        name = study(stack, body, max_trial_count=7).name
        before = stack.until(
            name, lambda job: len(job.trials) == 4 and all(t.measurements for t in job.trials)
        )
        assert [trial.state.name for trial in list(before.trials)[:2]] == ["SUCCEEDED"] * 2
        process.kill()
        process.wait(20)
    (tmp_path / "buckets" / "b" / "go").touch()
    with start() as stack:
        done = ended(stack, name)
        assert done.state.name == "JOB_STATE_SUCCEEDED", done
        assert [(trial.id, trial.state.name) for trial in done.trials] == [
            (str(at), "SUCCEEDED") for at in range(1, 8)
        ]
        assert list(done.trials)[:2] == list(before.trials)[:2]
        for old, new in zip(before.trials, done.trials, strict=False):
            assert (old.custom_job, old.parameters, old.start_time) == (
                new.custom_job,
                new.parameters,
                new.start_time,
            )
        for trial in done.trials:
            assert [one.step_count for one in trial.measurements] == [1, 2, 3]
            times = [one.elapsed_duration for one in trial.measurements]
            assert times == sorted(times)
        assert len({trial.parameters[0].value for trial in done.trials}) == 7
        ran = Counter((tmp_path / "buckets" / "b" / "ran").read_text().split())
        assert ran == {"1": 1, "2": 1, "3": 2, "4": 2, "5": 1, "6": 1, "7": 1}


def test_a_trial_that_is_started_again_by_its_own_job_leaves_no_measurement_twice(stack: Any) -> None:
    body = (
        "report(x, 1); report(x, 2)\n"
        "again = buckets / f'again-{trial}'\n"
        "if not again.exists(): again.touch(); os.kill(os.getpid(), 9)\n"
        "report(x, 3)"
    )
    done = ended(stack, study(stack, body, max_trial_count=2).name)
    assert [trial.state.name for trial in done.trials] == ["SUCCEEDED"] * 2
    for trial in done.trials:
        assert [one.step_count for one in trial.measurements] == [1, 2, 3]


def test_a_trial_that_a_kill_left_without_a_job_gets_it_from_the_next_stack(
    tmp_path: Path, start: Callable[..., Any]
) -> None:
    with start(grace_s=0.1) as stack:
        name = study(stack, "wait('go'); report(x, 1)", max_trial_count=3).name
        before = stack.until(name, lambda job: len(job.trials) == 2)
    with contextlib.closing(sqlite3.connect(tmp_path / "state" / "jobs.sqlite")) as database, database:
        # What a kill leaves behind that came after the trial was kept and before its job was.
        database.execute(
            "DELETE FROM jobs WHERE job_id = ?", [before.trials[1].custom_job.rpartition("/")[2]]
        )
    with start() as stack:
        (stack.buckets / "go").touch()
        done = ended(stack, name)
        assert [trial.state.name for trial in done.trials] == ["SUCCEEDED"] * 3
        assert [trial.custom_job for trial in done.trials][:2] == [
            trial.custom_job for trial in before.trials
        ]
        stack.jobs.delete_hyperparameter_tuning_job(name=name)
    with contextlib.closing(sqlite3.connect(tmp_path / "state" / "jobs.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM jobs").fetchone() == (0,)
    assert list((tmp_path / "state" / "metrics").iterdir()) == []
