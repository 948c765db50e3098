"""A watched run, drawn: screens for people to review, and lines for a pipe."""

import io
from dataclasses import replace
from datetime import timedelta

import pytest
from rich.console import Console

from tests.cli.screens import assert_screen
from tests.cli.study.studies import START as TRIAL_START
from tests.cli.study.studies import many, study, trial
from tests.cli.watch import sightings
from tests.client.test_lanes import line
from tests.contract.test_retries import lose, next_job, retried
from tests.contract.world import World
from tests.narrowing import present
from trainmaster.cli.watch.run import RunView, doing, epochs, picture, stage_news
from trainmaster.client.find import Run
from trainmaster.client.logs.line import SERVICE
from trainmaster.client.logs.progress import ReplicaProgress, TrainingProgress
from trainmaster.client.study.study import Study
from trainmaster.client.watch.sighting import Sighting, sighting_after
from trainmaster.client.watch.timeline import (
    ABANDONED,
    LAST_TRIAL_ENDED,
    SUBMITTED,
    WAITING,
    RunStage,
    timeline,
)
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.runs.job import TrialState
from trainmaster.orchestrator.core.runs.record import RunRecord


def drawn(seen: Sighting, *, width: int, height: int = 24) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None, force_terminal=True)
    with console.capture() as captured:
        console.print(picture(seen, console))
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def tuning(trials: Study) -> Sighting:
    name = "projects/1/locations/us-central1/hyperparameterTuningJobs/12"
    job = {"name": name, "state": "JOB_STATE_RUNNING"}
    changes = {"model": None, "completion": None, "tuning": None, "job": job}
    history = sightings.history("reserved", "submitted", "running")
    run = sightings.run("tuned", state="running", history=history, **changes)
    return replace(sightings.installing(), run=run, study=trials, parallel_trials=2, warnings=())


RUNNING = study(trial(1, final=0.7), trial(2, state=TrialState.ACTIVE, curve=(0.4,)))
TUNED = replace(tuning(study(trial(1, final=0.7), trial(2, final=0.9))), job_ended_at=sightings.seconds(60))
SEEN = {
    "waiting": sightings.reserved(),
    "installing": sightings.installing(),
    "training": sightings.training(),
    "scripted": sightings.scripted(),
    "succeeded": sightings.ended(),
    "tuning": tuning(RUNNING),
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", SEEN)
def test_the_screen_is_the_reviewed_one(name: str, width: int) -> None:
    assert_screen(f"watch.{name}.{width}", drawn(SEEN[name], width=width))


@pytest.mark.parametrize(
    "seen", [*SEEN.values(), sightings.training(workers=500), tuning(study()), tuning(many(500))]
)
@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_every_screen_fits_the_terminal_with_the_spinner_below(
    seen: Sighting, width: int, height: int
) -> None:
    lines = drawn(seen, width=width, height=height).splitlines()
    assert len(lines) < height
    assert max(map(len, lines)) <= width


def printed(*seen: Sighting) -> str:
    out = io.StringIO()
    view = RunView(Console(file=out, force_terminal=False, width=20))
    with view.running():
        for each in seen:
            view.show(each)
    return out.getvalue()


def test_an_interrupted_view_leaves_the_picture_without_the_spinner() -> None:
    console = Console(
        file=(out := io.StringIO()), force_terminal=True, width=80, height=40, color_system=None
    )
    view, under_way = RunView(console), doing(sightings.training())

    def interrupted() -> None:
        with view.running():
            view.show(sightings.training())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert under_way in out.getvalue()
    last = out.getvalue().rpartition("\x1b[2K")[2]
    assert f"Run {sightings.RUN_ID}" in last
    assert under_way not in last


def test_a_pipe_gets_each_change_once_whole_and_in_order() -> None:
    seen = [sightings.installing(), sightings.training(), sightings.training(), sightings.ended()]
    assert_screen("watch.pipe", printed(*seen))
    assert doing(sightings.ended()) == "the run is over: succeeded"


def test_a_job_that_is_queued_for_long_is_under_way_as_that() -> None:
    history = sightings.history("reserved", "submitted")
    run = sightings.run(state="submitted", history=history, model=None, completion=None)
    created = present(present(run.record.job).create_time)
    queued = replace(sightings.installing(), run=run, job_started_at=None)
    assert doing(replace(queued, at=created + timedelta(hours=2))) == "queued 2h in us-central1"
    assert doing(replace(queued, at=created)) == queued.service_line


def test_a_pipe_gets_each_new_last_line_of_the_first_replica_of_a_script() -> None:
    later = {"workerpool0-0": "epoch 16/20: loss 0.0498, accuracy 0.997", "workerpool1-0": ""}
    first = sightings.scripted()
    lines = printed(first, first, replace(first, last_lines=later)).splitlines()
    assert [line.strip() for line in lines if "workerpool" in line] == [
        "workerpool0-0  epoch 15/20: loss 0.0503, accuracy 0.996",
        "workerpool0-0  epoch 16/20: loss 0.0498, accuracy 0.997",
    ]
    assert doing(first) == "the job is running"


def test_a_pipe_gets_each_trial_once_before_the_stages_that_follow() -> None:
    text = printed(tuning(RUNNING), tuning(RUNNING), TUNED)
    assert text.count("trial 2 started") == text.count("trial 2 succeeded") == 1
    assert text.index("trial 2 succeeded") < text.index("Last trial ended")


def test_a_failed_trial_shows_the_last_line_of_its_replica_and_no_link() -> None:
    reason = (
        "The replica workerpool0-0 exited with a non-zero status of 1. To find out more about why your job exited "
        "please check the logs: https://console.cloud.google.com/logs/viewer?project=p"
    )
    failed = trial(3, state=TrialState.INFEASIBLE, reason=reason)
    seen = replace(tuning(study(failed)), last_lines={"3/workerpool0-0": "odd depth is bad"})
    text = printed(seen)
    assert (
        "trial 3 infeasible after 30 s: workerpool0-0 exited with status 1, its last line: odd depth is bad"
        in text
    )
    silent = printed(replace(seen, last_lines={}))
    assert "exited with a non-zero status of 1.\n" in silent
    assert "console.cloud" not in text + silent


def test_a_line_of_the_service_about_a_trial_names_it() -> None:
    text = "Tearing down training program."
    of_trial, own = line(1, text, SERVICE, "3"), replace(line(2, text, SERVICE), severity="WARNING")
    seen = sighting_after(sighting_after(tuning(RUNNING), of_trial), own)
    assert seen.service_lines[-2:] == (f"trial 3: {text}", text)
    assert seen.warnings == (text,)


def test_control_characters_of_a_log_do_not_reach_the_terminal() -> None:
    seen = replace(sightings.installing(), service_lines=("\x1b[2Jgone",), warnings=("\x1b]0;title\x07",))
    assert "\x1b" not in drawn(seen, width=80)
    assert "\x1b" not in printed(seen)


def test_a_run_of_a_message_or_a_rule_begins_with_it() -> None:
    source = sightings.run().document["source"]
    message = {key: source[key] for key in ("event_id", "event_time", "received_at")}
    published = sightings.run(source={**message, "kind": "message", "message_id": "17"})
    fired = sightings.run(source={**message, "kind": "rule", "rule_id": "horses", "firing": 3})
    first = [timeline(replace(sightings.ended(), run=run))[0] for run in (published, fired)]
    assert [(stage.title, stage.detail) for stage in first] == [
        ("Message published", "17"),
        ("Rule fired", "horses, firing 3"),
    ]


def test_a_run_of_several_jobs_has_the_stages_of_the_last_in_the_order_of_their_times() -> None:
    world = World()
    run_id = retried(world)
    lost = lose(world, run_id)

    def stages(record: RunRecord) -> list[RunStage]:
        run = Run(document={}, record=record)
        return [stage for stage in timeline(Sighting(run=run, at=world.clock.now())) if stage.at is not None]

    resting = stages(world.record(run_id))
    assert [stage.title for stage in resting] == ["Request uploaded", "Run reserved", ABANDONED, WAITING]
    assert resting[2].detail.startswith(f"{job_id(lost.name)}: Internal error occurred.")
    record = next_job(world, run_id)
    again = stages(record)
    assert [stage.title for stage in again] == [*(stage.title for stage in resting), SUBMITTED]
    assert [stage.at for stage in again] == sorted(present(stage.at) for stage in again)
    first = [key for key, _ in stage_news(stages(world.record(run_id)), None)]
    lose(world, run_id)
    second = [key for key, _ in stage_news(stages(world.record(run_id)), None)]
    assert len({*first, *second}) == len(first) + 2, "another job was lost, and the run waits again"


def test_stages_that_an_ended_run_never_passed_are_left_out() -> None:
    document = sightings.run("failed")
    titles = [stage.title for stage in timeline(Sighting(run=document, at=sightings.START))]
    assert "Model exported" not in titles
    assert titles[-1] == "Record closed"


def test_the_timeline_of_a_tuning_has_the_first_and_last_trial() -> None:
    stages = {stage.title: stage for stage in timeline(tuning(RUNNING))}
    assert stages["First trial started"].at == TRIAL_START
    assert stages["First trial started"].detail == "2 trials, 2 at a time"
    assert stages[LAST_TRIAL_ENDED].at is None
    (last,) = [stage for stage in timeline(TUNED) if stage.title == LAST_TRIAL_ENDED]
    assert last.at == TRIAL_START + timedelta(seconds=30)


def test_a_trials_epoch_is_its_furthest_replicas() -> None:
    chief = ReplicaProgress(replica="chief-0", steps_done=9, epoch=3, epochs=10)
    worker = ReplicaProgress(replica="worker-0", steps_done=7, epoch=2, epochs=10)
    second = ReplicaProgress(replica="chief-0", epochs=10)
    lanes = {"1/workerpool0-0": chief, "1/workerpool1-0": worker, "2/workerpool0-0": second}
    assert epochs(TrainingProgress(replicas=lanes)) == {"1": "epoch 3/10", "2": "epoch 1/10"}
