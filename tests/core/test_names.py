"""Names are legal wherever they are used, and the same for the same event."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.orchestrator.core.job_names import same_job
from trainmaster.orchestrator.core.names import (
    is_object_name,
    is_request_object,
    is_run_id,
    marker_object,
    model_name_from,
    output_uri,
    registry_model_id,
    run_id_at,
    run_id_of_key,
    run_id_of_marker,
    split_object_uri,
    status_object,
    stem,
    waiting_object,
    waiting_parts,
)

LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
LEGACY_JOB_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # hypothesis adds the zone


@given(st.text(), MOMENTS, st.text())
def test_a_run_id_is_a_legal_label_and_legacy_job_id(base: str, moment: datetime, identity: str) -> None:
    for run_id in (run_id_at(base, moment, identity), run_id_of_key(base, identity)):
        assert LABEL.fullmatch(run_id)
        assert is_run_id(run_id)
        assert LEGACY_JOB_ID.fullmatch(run_id.replace("-", "_"))


def test_a_run_id_shows_base_time_and_hash() -> None:
    moment = datetime(2026, 3, 1, 13, 30, 0, tzinfo=timezone(timedelta(hours=1)))
    assert re.fullmatch(r"my-model-20260301t123000-[0-9a-f]{10}", run_id_at("My Model!", moment, "x"))
    assert re.fullmatch(r"message-key-[0-9a-f]{20}", run_id_of_key("message", "x"))


@given(MOMENTS, MOMENTS)
def test_run_ids_of_one_base_sort_by_time(one: datetime, other: datetime) -> None:
    earlier, later = sorted((one, other))
    if later - earlier >= timedelta(seconds=1):
        assert run_id_at("base", earlier, "z") < run_id_at("base", later, "a")


def test_different_identities_are_different_runs() -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    assert len({run_id_at("a", moment, f"gs://inbox/requests/a.yaml#{n}") for n in range(1000)}) == 1000


def test_only_documents_under_requests_are_requests() -> None:
    assert is_request_object("requests/a.yaml")
    assert is_request_object("requests/team/a.YML")
    assert is_request_object("requests/a.json")
    for name in (
        "a.yaml",
        "requests/a.txt",
        "requests/",
        "rules/a.yaml",
        "Requests/a.yaml",
        "status/requests/a.yaml",
    ):
        assert not is_request_object(name)


def test_a_name_gives_its_stem_and_a_marker_its_run() -> None:
    assert stem("requests/vision/cassava.v2.yaml") == "cassava.v2"
    assert run_id_of_marker(marker_object("run-1")) == "run-1"


ODD = (
    "requests/../runs/a.yaml", "requests/./a.yaml", "requests//a.yaml", "requests/\x1b[31m\x00.yaml",
    "requests/a\u202elmay.b.yaml", "requests/a\u2028b.yaml", "requests/\ufeffa.yaml",
)  # fmt: skip
LOOK_ALIKES = ("requests/a.yaml", "requests/\u0430.yaml", "requests/\uff41.yaml", "requests/a\u0301.yaml")


@given(st.text(min_size=1, max_size=600))
def test_a_status_object_has_a_legal_name_under_its_prefix(name: str) -> None:
    found = status_object(f"requests/{name}")
    assert is_object_name(found)
    assert found.isprintable()
    assert found.startswith("status/")
    assert not {"", ".", ".."} & set(found.split("/"))


@pytest.mark.parametrize("name", ODD)
def test_the_status_of_an_odd_name_is_called_by_its_hash(name: str) -> None:
    assert re.fullmatch(r"status/odd-name-[0-9a-f]{20}\.json", status_object(name))
    assert len({status_object(each) for each in ODD}) == len(ODD)


def test_names_that_look_alike_are_different_requests_with_statuses_of_their_own() -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    assert len({status_object(name) for name in LOOK_ALIKES}) == len(LOOK_ALIKES)
    assert len({run_id_at(stem(name), moment, name) for name in LOOK_ALIKES}) == len(LOOK_ALIKES)
    assert status_object(LOOK_ALIKES[1]) == "status/requests/\u0430.yaml.json"


@pytest.mark.parametrize("name", [*ODD, *LOOK_ALIKES, "requests/" + "x" * 1010 + ".yaml", "requests/.yaml"])
def test_whatever_an_object_is_called_its_runs_objects_lie_in_their_places(name: str) -> None:
    run_id = run_id_at(stem(name), datetime(2026, 3, 1, tzinfo=UTC), name)
    assert is_run_id(run_id)
    assert output_uri("gs://models", model_name_from(stem(name)), run_id).count("/") == 4


@pytest.mark.parametrize("name", ["x" * 1025, "\u00fc" * 513, "a\nb", "a\rb", "", "\ud800"])
def test_an_invalid_object_name_is_recognized(name: str) -> None:
    assert not is_object_name(name)


@pytest.mark.parametrize("name", ["x" * 1024, "\u00fc" * 512, "a/../b", "\x1b[31m"])
def test_a_valid_object_name_is_recognized(name: str) -> None:
    assert is_object_name(name)


def test_object_uris_are_split_once() -> None:
    assert split_object_uri("gs://bucket/a/b/") == ("bucket", "a/b/")


def test_a_job_is_the_same_under_the_projects_number_and_no_other() -> None:
    name = "projects/my-project/locations/us-central1/customJobs/7"
    assert same_job(name, "projects/123456/locations/us-central1/customJobs/7")
    assert not same_job(name, "projects/my-project/locations/europe-west1/customJobs/7")
    assert not same_job(name, "projects/my-project/locations/us-central1/customJobs/77")
    assert not same_job("", "")


def test_a_place_of_the_first_years_is_read_as_it_was_written() -> None:
    moment = datetime(1, 1, 1, 0, 0, 0, 7, tzinfo=UTC)
    name = waiting_object(50, moment, "run-1")
    assert name == "waiting/050-00010101t000000000007-run-1"
    assert waiting_parts(name) == (50, moment, "run-1")


@given(st.from_regex("[a-z][a-z_]*", fullmatch=True), st.from_regex("[a-z][a-z0-9]{0,5}", fullmatch=True))
def test_no_model_of_a_deployment_with_a_name_has_the_id_of_one_without(model: str, deployment: str) -> None:
    named = registry_model_id(model, None, deployment)
    assert named.startswith(f"{deployment}__")
    assert re.fullmatch(f"{deployment}-.*-[0-9a-f]{{10}}", registry_model_id(named, None))
    assert registry_model_id("staging__cassava", None) == "staging__cassava"
