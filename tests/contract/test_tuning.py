"""The end of a tuning ends its run, and records every trial, the best one and its model."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from google.cloud.aiplatform_v1.types import Trial as ServiceTrial

from tests.contract.schemas import RECORD
from tests.contract.world import START, World, labelled
from tests.narrowing import present
from trainmaster.orchestrator.core.completion.outcome import ERROR_DELAY
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.job import Job, JobState, Measured, Trial, TrialState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import END_OF

ROOT = Path(__file__).resolve().parents[2]
REQUEST = (ROOT / "examples" / "tuning.yaml").read_bytes()
END_WAIT = ERROR_DELAY


def launched(request: bytes = REQUEST) -> tuple[World, IncomingDocument, Job]:
    world = World()
    incoming = world.drop_and_launch(request)
    (job,) = world.jobs.all()
    return world, incoming, job


def trial(
    number: int, accuracy: float | None, state: TrialState = TrialState.SUCCEEDED, tag: str = "accuracy"
) -> Trial:
    measured = () if accuracy is None else (Measured(metrics={tag: accuracy}, step=10),)
    return Trial(
        id=str(number),
        state=state,
        parameters={"momentum": 0.5, "learning_rate": 0.01 * number, "num_units": 64.0},
        final=measured[0] if measured else None,
        measurements=measured,
    )


def ended(state: JobState, trials: list[Trial], request: bytes = REQUEST) -> RunRecord:
    world, incoming, job = launched(request)
    world.try_out(world.record(incoming.run_id), state, trials)
    world.complete(world.hint(job))
    record = world.record(incoming.run_id)
    RECORD.validate(encoded(record))
    return record


def test_the_best_trials_model_is_the_runs_model() -> None:
    record = ended(JobState.SUCCEEDED, [trial(10, 0.7), trial(2, 0.9), trial(1, 0.8)])
    assert record.tuning is not None
    assert record.tuning.best_trial is not None
    assert record.model is not None
    assert (record.tuning.best_trial.id, record.tuning.best_trial.value) == ("2", 0.9)
    assert record.model.uri == record.tuning.best_trial.model_uri == f"{record.output_uri}/2/model/"
    assert record.model.metrics["accuracy"] == 0.75
    assert [each.id for each in record.tuning.trials] == ["1", "2", "10"]
    assert record.problems == ()


@pytest.mark.parametrize("state", sorted(END_OF))
def test_every_end_keeps_its_trials_and_the_best_of_them(state: JobState) -> None:
    world, incoming, _job = launched()
    trials = [trial(1, 0.6), trial(2, None, TrialState.INFEASIBLE)]
    world.try_out(world.record(incoming.run_id), state, trials)
    world.reconcile_after(END_WAIT)
    record = world.record(incoming.run_id)
    assert record.state is END_OF[state]
    assert record.tuning is not None
    assert present(record.tuning.best_trial).model_uri == f"{record.output_uri}/1/model/"
    assert len(record.tuning.trials) == 2


def test_only_succeeded_trials_are_best_and_of_equal_ones_the_first() -> None:
    trials = [
        trial(1, 0.99, TrialState.INFEASIBLE),
        trial(5, 0.7),
        trial(3, 0.7),
        trial(4, 1.0, TrialState.ACTIVE),
        trial(6, float("nan")),
    ]
    record = ended(JobState.SUCCEEDED, trials)
    assert present(present(record.tuning).best_trial).id == "3"


def test_the_goal_decides_what_is_best() -> None:
    request = REQUEST.replace(b"maximize", b"minimize")
    record = ended(JobState.SUCCEEDED, [trial(1, 0.9), trial(2, 0.1)], request)
    assert record.tuning is not None
    assert record.tuning.best_trial is not None
    assert (record.tuning.best_trial.id, record.tuning.best_trial.goal) == ("2", "minimize")


@pytest.mark.parametrize(("measurement", "best"), [(b"best", "1"), (b"last", "2")])
def test_the_selected_measurement_counts_where_the_service_names_no_final_one(
    measurement: bytes, best: str
) -> None:
    def measured(number: int, *values: float) -> Trial:
        each = tuple(Measured(metrics={"accuracy": value}) for value in values)
        return Trial(id=str(number), state=TrialState.SUCCEEDED, measurements=each)

    request = REQUEST.replace(b"measurement: best", b"measurement: " + measurement)
    record = ended(JobState.SUCCEEDED, [measured(1, 0.9, 0.1), measured(2, 0.5)], request)
    assert present(present(record.tuning).best_trial).id == best


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        ([trial(1, None, TrialState.INFEASIBLE)], "hyperparameter_metric_tag='accuracy'"),
        ([trial(1, 0.5, tag="accurcy")], "did you mean 'accurcy'?"),
        ([trial(1, 0.5, tag="loss")], "they reported 'loss'"),
        ([trial(1, float("nan"))], "every trial diverged"),
        ([trial(1, 0.5, TrialState.INFEASIBLE)], "none that reported 'accuracy' succeeded (1 infeasible)"),
        ([], "no trials"),
    ],
)
def test_a_study_without_a_best_trial_says_why(trials: list[Trial], words: str) -> None:
    record = ended(JobState.SUCCEEDED, trials)
    assert (present(record.tuning).best_trial, record.model) == (None, None)
    assert words in record.problems[0]


def test_a_study_that_reported_nothing_quotes_the_first_reason_of_a_trial() -> None:
    reason = "The trial reported nan as the metric 'accuracy', and never a finite number."
    silent = trial(1, None, TrialState.INFEASIBLE)
    record = ended(JobState.SUCCEEDED, [silent, replace(silent, id="2", infeasible_reason=reason)])
    (problem,) = record.problems
    assert problem.startswith(
        f"no trial reported the metric 'accuracy' (2 infeasible). Vertex AI says: {reason} If trials ran to their end"
    )


def test_the_end_of_a_trials_own_job_ends_nothing() -> None:
    world, incoming, study = launched()
    of_trial = world.jobs.submit(labelled(incoming.run_id, f"{study.output_uri}/1", study.labels))
    before = world.record(incoming.run_id)
    for state in (JobState.RUNNING, JobState.SUCCEEDED):
        world.jobs.become(of_trial.name, state)
        assert world.complete(world.hint(of_trial)).severity == "DEBUG"
    assert world.record(incoming.run_id) == before


def test_a_record_of_a_thousand_trials_stays_below_a_megabyte() -> None:
    """Each with ten parameters, times, and a reason as long as the record keeps."""
    parameters = {f"parameter_{number}": 0.1234567890123456 for number in range(10)}
    record = ended(
        JobState.SUCCEEDED,
        [
            replace(
                trial(number, 0.1234567890123456),
                parameters=parameters,
                start_time=START,
                end_time=START,
                infeasible_reason="x" * 1000 if number % 2 else "",
            )
            for number in range(1, 1001)
        ],
    )
    assert len(json.dumps(encoded(record))) < 1_000_000


def test_every_trial_state_of_the_service_is_known() -> None:
    assert set(ServiceTrial.State.__members__) == {state.value for state in TrialState}
