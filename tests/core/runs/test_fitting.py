"""No record has more than MAX_RECORD_BYTES, whatever came from outside."""

import functools
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.core.runs.test_record import NOW, record
from tests.core.shipped import assert_valid
from trainmaster.orchestrator.core.documents.codec import decoded, encoded, json_bytes, parse_json
from trainmaster.orchestrator.core.runs.end import Model, Rejection, TuningResult
from trainmaster.orchestrator.core.runs.job import Failure, RecordedTrial, TrialState
from trainmaster.orchestrator.core.runs.record import (
    LEFT_OUT,
    PROBLEMS_MAX,
    TEXT_MAX_CHARS,
    AcceptedRequest,
    Original,
    RunRecord,
    stored_form,
)
from trainmaster.orchestrator.core.sizes import MAX_CANONICAL_BYTES, MAX_RECORD_BYTES

LONG = st.builds(lambda char, times: char * times, st.characters(), st.sampled_from([0, 300, 3_000_000]))


@functools.cache
def largest_request() -> dict[str, Any]:
    """The canonical request whose record is largest: most of it is the lines that the record indents further."""
    document: dict[str, Any] = {"model_name": "m", "args": []}
    document["args"] = [""] * ((MAX_CANONICAL_BYTES - len(json_bytes(document))) // 8 - 2)
    assert MAX_CANONICAL_BYTES - 1000 < len(json_bytes(document)) <= MAX_CANONICAL_BYTES
    return document


def with_request(of: RunRecord) -> RunRecord:
    return replace(
        of,
        request=AcceptedRequest(
            document=largest_request(),
            original=Original(
                uri="gs://ledger/submitted/run-1/a.json", sha256="a" * 64, dialect="trainmaster"
            ),
            model_name="m",
            output_uri="gs://models/m/run-1",
        ),
    )


def trial(number: int, text: str) -> RecordedTrial:
    return RecordedTrial(
        id=str(number),
        state=TrialState.INFEASIBLE,
        parameters={f"p{at}": text[:100] for at in range(5)},
        infeasible_reason=text,
        failure=Failure(message=text),
        start_time=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.mark.slow
@settings(max_examples=6, deadline=None, phases=[Phase.generate])  # each record has megabytes
@given(
    problems=st.lists(LONG, max_size=2),
    repeated=st.sampled_from([1, 20_000]),
    text=LONG,
    trials=st.sampled_from([0, 1_000]),
    unknown=LONG,
)
def test_every_record_is_stored_within_the_limit_and_can_be_read_again(
    problems: list[str], repeated: int, text: str, trials: int, unknown: str
) -> None:
    large = replace(
        with_request(record()),
        problems=tuple(problems) + ("again",) * repeated,
        failure=Failure(message=text),
        rejection=Rejection(report_uri="gs://l/r", faults=({"path": text, "problem": text},)),
        tuning=TuningResult(trials=tuple(trial(number, text[:5000]) for number in range(trials))),
        model=Model(uri="gs://m/a/", metrics={f"{at:0256}": 0.1 for at in range(200)}),
    )
    document = {**_dict(encoded(large)), "newer": unknown}
    stored, content = stored_form(large, document)
    assert len(content) <= MAX_RECORD_BYTES
    found = decoded(RunRecord, parse_json(content))
    assert found.request == large.request
    assert (found.run_id, found.state, found.model) == (large.run_id, large.state, large.model)
    assert_valid(encoded(replace(stored, request=None)), "run_record.v2")


def _dict(value: object) -> dict[str, Any]:
    assert isinstance(value, dict)
    return value


def test_a_normal_record_is_stored_as_it_is() -> None:
    normal = replace(record(), problems=("x" * TEXT_MAX_CHARS,) * PROBLEMS_MAX)
    document = {**_dict(encoded(normal)), "newer": 1}
    assert stored_form(normal, document) == (normal, json_bytes(document))


def test_too_many_and_too_long_problems_are_cut_and_counted() -> None:
    stored, _ = stored_form(replace(record(), problems=("y" * 5000,) * 300), {})
    assert stored.problems[-1] == "and 50 more problems"
    assert {len(problem) for problem in stored.problems[:-1]} == {TEXT_MAX_CHARS}


@pytest.mark.parametrize("trials", [4_000])
def test_a_record_that_leaves_something_out_says_so(trials: int) -> None:
    large = replace(record(), tuning=TuningResult(trials=tuple(trial(at, "x" * 300) for at in range(trials))))
    stored, _ = stored_form(large, encoded(large))
    assert stored.problems == (LEFT_OUT,)
    assert stored.updated_at == NOW
