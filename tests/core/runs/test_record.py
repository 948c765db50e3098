"""The states, their legal moves, and the record as JSON."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.shipped import assert_valid
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.codec import decoded, encoded, encoded_time
from trainmaster.orchestrator.core.runs.end import (
    ChampionVerdict,
    Completion,
    Cost,
    EndReport,
    Model,
    ModelFiles,
    Rejection,
    TuningResult,
)
from trainmaster.orchestrator.core.runs.job import (
    BestTrial,
    Failure,
    JobState,
    Measured,
    RecordedJob,
    RecordedTrial,
    TrialState,
)
from trainmaster.orchestrator.core.runs.moves import live_lease, taken_over, with_state
from trainmaster.orchestrator.core.runs.record import (
    AbandonedJob,
    AcceptedRequest,
    AdmissionState,
    Estimate,
    GivingUp,
    Lease,
    Original,
    RefusedCandidate,
    RunRecord,
    Source,
    Step,
    SubmissionState,
    Waiting,
)
from trainmaster.orchestrator.core.runs.states import END_OF, ENDS, LEGAL_MOVES, PROGRESS, RunState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(state: RunState = RunState.RESERVED) -> RunRecord:
    return RunRecord(
        run_id="run-1",
        state=state,
        source=Source(kind="message", event_id="1", event_time=NOW, received_at=NOW, message_id="1"),
        attempt="a",
        updated_at=NOW,
        history=(Step(state=state, at=NOW),),
    )


def test_every_state_has_its_moves_and_its_place() -> None:
    assert set(LEGAL_MOVES) == set(PROGRESS) == set(RunState)


def test_an_end_is_final_and_every_other_state_can_end() -> None:
    for state, onward in LEGAL_MOVES.items():
        assert (onward == frozenset()) is (state in ENDS)
        if state not in ENDS:
            assert {RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED} <= onward


def test_no_move_goes_back_but_that_from_a_job_to_waiting() -> None:
    for state, onward in LEGAL_MOVES.items():
        back = {next_state for next_state in onward if PROGRESS[next_state] <= PROGRESS[state]}
        assert back == ({RunState.WAITING} if state in (RunState.SUBMITTED, RunState.RUNNING) else set())


def test_a_lease_keeps_others_off_until_it_ends() -> None:
    minute = timedelta(minutes=1)
    held = taken_over(record(), attempt="b", now=NOW, lease=minute)
    assert live_lease(held, NOW) == live_lease(held, NOW + minute / 2) == held.submission.lease
    assert live_lease(held, NOW + minute) is None
    assert live_lease(record(), NOW) is None


@pytest.mark.parametrize("end", sorted(ENDS))
def test_an_ended_run_refuses_to_move(end: RunState) -> None:
    with pytest.raises(ValueError, match=f"cannot move from {end} to running"):
        with_state(record(end), RunState.RUNNING, entered_at=NOW, now=NOW, attempt="b")


def test_every_end_of_a_job_is_an_end_of_its_run() -> None:
    assert set(END_OF.values()) == ENDS - {RunState.REJECTED}
    going_on = set(JobState) - set(END_OF)
    assert {state.name for state in going_on} == {
        "UNSPECIFIED",
        "QUEUED",
        "PENDING",
        "RUNNING",
        "CANCELLING",
        "PAUSED",
        "UPDATING",
    }


def test_every_job_state_of_the_service_is_known() -> None:
    from google.cloud.aiplatform_v1.types import JobState as ServiceState

    assert set(ServiceState.__members__) == {state.value for state in JobState}


@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.timezones()))  # noqa: DTZ001  # hypothesis adds the zone
def test_times_come_back_as_the_same_moment(moment: datetime) -> None:
    document = encoded(Step(state=RunState.RUNNING, at=moment))
    assert decoded(Step, document).at == moment.astimezone(UTC)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        encoded_time(datetime(2026, 1, 1))  # noqa: DTZ001  # the mistake under test


def test_a_record_with_every_field_fits_its_schema_and_is_read_back_as_it_was() -> None:
    """Also those fields that no flow of this release fills: a record that has them survives its next write."""
    job_name = "projects/p/locations/l/customJobs/1"
    trial = RecordedTrial(id="1", state=TrialState.SUCCEEDED, measurement=Measured(metrics={"loss": 0.5}))
    best = BestTrial(id="1", metric="loss", goal="minimize", value=0.5, parameters={"rate": 0.1})
    full = replace(
        record(RunState.SUCCEEDED),
        source=replace(
            record().source,
            team="vision",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        request=AcceptedRequest(
            document={"model_name": "m"},
            original=Original(uri="gs://l/submitted/run-1/0.json", sha256="0" * 64, dialect="custom-jobs"),
            model_name="m",
            output_uri="gs://models/m/run-1",
            estimate=Estimate(
                currency="USD", as_of="2026-01-01", per_hour=Decimal("1.5"), at_most=Decimal(3)
            ),
        ),
        rejection=Rejection(report_uri="gs://l/rejected/run-1.json", cap="runs_per_hour/2026-03-01T12"),
        admission=AdmissionState(
            waiting=Waiting(reason="no room", attempts=1, not_before=NOW, limit="all"),
            slots=("all/0@1",),
            refused_since=NOW,
            rate_limited_since=NOW,
        ),
        submission=SubmissionState(
            lease=Lease(attempt="b", expires_at=NOW),
            tries=(RefusedCandidate(candidate=0, text="l, n1", at=NOW, outcome="no room"),),
            abandoned_jobs=(
                AbandonedJob(job=job_name, candidate=0, reason="no machines", at=NOW, cost=Decimal(1)),
            ),
            giving_up=GivingUp(job=job_name, since=NOW, reason="late"),
            not_started_logged_at=NOW,
            second_jobs=(job_name,),
            second_job_check_at=NOW,
        ),
        cancel_requested_at=NOW,
        job=RecordedJob(name=job_name, state=JobState.SUCCEEDED, create_time=NOW, end_time=NOW),
        model=Model(
            uri="gs://models/m/run-1/model/",
            format="saved_model",
            files=ModelFiles(count=2, size_bytes=5, listing_uri="gs://l/x", listing_sha256="0" * 64),
        ),
        tuning=TuningResult(trials=(trial,), best_trial=best),
        failure=Failure(message="it ended", code=13, replica="workerpool0-0", last_lines=("a", "b")),
        completion=Completion(
            reported_by=EndReport(by="log", insert_id="1", entry_time=NOW),
            durations_s={"total": 1.0},
            cost=Cost(
                currency="USD",
                as_of="2026-03-01",
                ran_s=1.5,
                total=Decimal("0.5"),
                roles={"chief": Decimal("0.5")},
                trials={"1": Decimal("0.5")},
                unknown=("x in us-central1",),
            ),
            steps_done=("status",),
            champion=ChampionVerdict(promoted=True, reason="the first", compared_with="run-0"),
        ),
        problems=("a warning",),
    )
    assert_valid(encoded(full), "run_record.v2")
    assert decoded(RunRecord, encoded(full)) == full


def test_a_newer_writers_keys_are_passed_over() -> None:
    document = instance_of(dict, encoded(record()))
    assert decoded(RunRecord, {**document, "champion": True}) == record()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state": "flying"}, r"\$\.state"),
        ({"history": {}}, r"\$\.history: list expected"),
        ({"history": [{"state": "failed", "at": "yesterday"}]}, r"\$\.history\[0\]\.at"),
        ({"source": None}, r"\$\.source: dict expected"),
        ({"attempt": True}, r"\$\.attempt: str expected"),
    ],
)
def test_a_damaged_record_names_the_place(change: dict[str, object], words: str) -> None:
    document = instance_of(dict, encoded(record()))
    with pytest.raises(ValueError, match=words):
        decoded(RunRecord, {**document, **change})


def test_a_record_without_a_required_key_is_refused() -> None:
    with pytest.raises(ValueError, match="run_id"):
        decoded(RunRecord, {"state": "failed"})


def test_an_integer_of_a_record_may_have_a_point() -> None:
    document = instance_of(dict, encoded(record()))
    found = decoded(RunRecord, {**document, "submission": {"candidate": 1.0}}).submission.candidate
    assert (found, type(found)) == (1, int)
    with pytest.raises(ValueError, match=r"candidate: int expected, found float"):
        decoded(RunRecord, {**document, "submission": {"candidate": 1.5}})
