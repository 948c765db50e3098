"""The places to look for a model."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.core.roles import accepted, request
from trainmaster.orchestrator.core.completion.locations import ModelLocation, model_locations
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.record import AcceptedRequest, Original

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORIGINAL = Original(uri="gs://ledger/submitted/run-1/0.json", sha256="0" * 64, dialect="trainmaster")
JOB = Job(
    name="projects/p/locations/r/customJobs/1",
    state=JobState.SUCCEEDED,
    create_time=START,
    start_time=START + timedelta(minutes=1),
)
OWN = ModelLocation(uri="gs://models/m/run-1/model/")


def places(job: Job, uri: str | None) -> tuple[ModelLocation, ...]:
    sound = accepted(request(model_uri=uri))
    on_record = AcceptedRequest(
        document=sound.document,
        original=ORIGINAL,
        model_name="m",
        output_uri="gs://models/m/run-1",
        model_uri=sound.spec.model_uri_of("run-1"),
    )
    return model_locations(job, on_record, sound.spec)


def test_a_place_that_runs_share_counts_from_the_start_of_the_job_on() -> None:
    uri = "gs://models/fixed"
    assert places(JOB, uri) == (ModelLocation(uri=uri, is_named=True, since=JOB.start_time), OWN)
    never_started = replace(JOB, start_time=None)
    assert places(never_started, uri)[0].since == START


def test_a_place_with_the_runs_id_in_it_is_the_runs_alone() -> None:
    (named, own) = places(JOB, "gs://models/x/${run_id}/")
    assert (named, own) == (ModelLocation(uri="gs://models/x/run-1", is_named=True), OWN)


def test_a_job_that_goes_on_has_no_place_and_a_request_without_one_only_the_usual() -> None:
    assert places(replace(JOB, state=JobState.RUNNING), "gs://models/fixed") == ()
    assert places(JOB, None) == (OWN,)
