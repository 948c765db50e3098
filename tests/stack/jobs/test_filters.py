"""The jobs that the filter of a list call keeps."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainstack.errors import InvalidArgumentError
from trainstack.jobs.listing import Catalogue, parse_filter
from trainstack.jobs.resource.job import VertexJob

AT = datetime(2026, 5, 18, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def job() -> VertexJob:
    return labelled({"team": "vision", "tier-1": ""})


def labelled(labels: Mapping[str, str], *, job_id: str = "2") -> VertexJob:
    body = {
        "displayName": "my_job_1",
        "labels": labels,
        "jobSpec": {
            "workerPoolSpecs": [
                {"machineSpec": {"machineType": "m"}, "replicaCount": 1, "containerSpec": {"imageUri": "i"}}
            ]
        },
    }
    return VertexJob.parse(body, project="1", location="l", job_id=job_id, at=AT)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", True),
        ('display_name="my_job_1"', True),
        ('display_name!="my_job_1"', False),
        ('display_name:"my_job_*"', True),
        ('display_name:"*job"', False),
        ("display_name:job", True),
        ('displayName = "my_job_1"', True),
        ('state="JOB_STATE_PENDING"', True),
        ("state=JOB_STATE_SUCCEEDED", False),
        ("state!=JOB_STATE_SUCCEEDED", True),
        ('create_time>"2026-05-18T00:00:00Z"', True),
        ('create_time<="2026-05-18T12:00:00Z"', True),
        ('create_time<"2026-05-18T12:00:00+00:00"', False),
        ('create_time="2026-05-18T14:00:00+02:00"', True),
        ("labels.team=vision", True),
        ("labels.team!=vision", False),
        ("labels.other!=vision", True),
        ("labels.team:*", True),
        ("labels.none:*", False),
        ('labels.tier-1=""', True),
        ('state="JOB_STATE_PENDING" AND labels.team=vision', True),
        ('state="JOB_STATE_PENDING" labels.team=sound', False),
        ("labels.team=sound OR labels.team=vision", True),
        ("NOT labels.team=vision", False),
        ("(labels.team=sound OR labels.team=vision) AND NOT state=JOB_STATE_FAILED", True),
    ],
)
def test_a_filter_keeps_what_it_describes(job: VertexJob, text: str, kept: bool) -> None:
    assert parse_filter(text).matches(job.message) is kept


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("name=1", "field 'name'"),
        ("labels=1", "field 'labels'"),
        ("state>1", "operator '>' for state"),
        ("state=RUNNING", "JOB_STATE_RUNNING"),
        ("create_time>yesterday", "RFC 3339"),
        ("display_name", "an operator after 'display_name'"),
        ("display_name=", "a value"),
        ("(state=JOB_STATE_FAILED", r"expected '\)', found 'its end'"),
        ("state=JOB_STATE_FAILED)", r"expected its end, found '\)'"),
        ("labels.a=b OR labels.a=c AND labels.a=d", "AND and OR need parentheses"),
        ("NOT " * 30 + "labels.a=b", "nested more than 20 levels deep"),
        ('in_context("c")', "an operator after 'in_context'"),
        ("AND", "operator"),
        ("AND state=JOB_STATE_FAILED", "an operator after 'AND'"),
        ('display_name="open', "cannot be parsed"),
    ],
)
def test_an_invalid_filter_is_refused_with_the_reason(text: str, fault: str) -> None:
    with pytest.raises(InvalidArgumentError, match=fault):
        parse_filter(text)


@given(
    st.text()
    | st.lists(
        st.sampled_from(
            ["state", "=", ":", "(", ")", "NOT", "-", "AND", "OR", '"x"', "*", "labels.a", "create_time"]
        )
    ).map(" ".join)
)
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    try:
        parse_filter(text)
    except InvalidArgumentError as error:
        reason = str(error)
    else:
        reason = "Invalid filter: none"
    assert reason.startswith("Invalid filter")


@given(st.text("ab", max_size=8), st.text("ab*", max_size=6))
def test_stars_stand_for_any_text(name: str, pattern: str) -> None:
    whole = "(?s:.*)".join(map(re.escape, pattern.split("*")))
    found = re.fullmatch if "*" in pattern else re.search
    kept = parse_filter(f'labels.a:"{pattern}"').matches(labelled({"a": name}).message)
    assert kept is (found(whole, name) is not None)


def test_a_filter_of_many_stars_costs_no_more_than_its_length() -> None:
    """Backtracking over the places of each star would take practically forever."""
    job = labelled({"a": "a" * 60})
    assert not parse_filter(f'labels.a:"{"*a" * 30}b"').matches(job.message)
    assert parse_filter(f'labels.a:"{"*a" * 30}*"').matches(job.message)


def test_a_filter_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="2007 characters; at most 2000"):
        parse_filter("labels." + "a" * 2000)


WORDS = st.lists(
    st.sampled_from(
        ["labels.a=x", "labels.a=y", "labels.b=x", "labels.a!=x", "labels.a:*", "NOT labels.a=x"]
    ),
    max_size=4,
).flatmap(lambda parts: st.sampled_from([" AND ", " ", " OR "]).map(lambda joint: joint.join(parts)))
LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))


@given(WORDS, st.lists(LABELS, max_size=6), st.integers(min_value=0, max_value=5))
def test_the_label_that_a_filter_asks_for_leaves_no_matching_job_out(
    text: str, labels: list[dict[str, str]], gone: int
) -> None:
    jobs = [labelled(each, job_id=str(number)) for number, each in enumerate(labels)]
    catalogue = Catalogue(jobs)
    catalogue.pop(str(gone))
    wanted = parse_filter(text)
    looked_at = [job for job in catalogue.having(wanted.label) if wanted.matches(job.message)]
    assert looked_at == [job for job in jobs if job.job_id != str(gone) and wanted.matches(job.message)]
