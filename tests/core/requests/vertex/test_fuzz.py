"""Whatever stands wherever in a file for gcloud, the answer is a request or faults in the words of the file."""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.standards import STANDARDS
from tests.core.vertex_files import Path, answered, changed, job, job_spec, package_pool
from trainmaster.orchestrator.core.requests.dialects import dialect_of
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.submission import Target, submission_of

TARGET = Target(project="my-project", region="us-central1", models_bucket="models")
PACKED = {"displayName": "packed", "jobSpec": {"workerPoolSpecs": [package_pool(0), {}, package_pool(2)]}}
STUDY: dict[str, Any] = {
    "metrics": [{"metricId": "m", "goal": "MAXIMIZE", "safetyConfig": {"safetyThreshold": 1}}],
    "parameters": [
        {
            "parameterId": "layers",
            "integerValueSpec": {"minValue": "1", "maxValue": "4"},
            "scaleType": "UNIT_LINEAR_SCALE",
            "conditionalParameterSpecs": [
                {
                    "parentIntValues": {"values": ["3"]},
                    "parameterSpec": {"parameterId": "rate", "discreteValueSpec": {"values": [0.1]}},
                }
            ],
        }
    ],
    "algorithm": "RANDOM_SEARCH",
    "convexAutomatedStoppingSpec": {"maxStepCount": "100"},
    "studyStoppingConfig": {"maximumRuntimeConstraint": {"maxDuration": "60s"}, "maxNumTrials": 3},
}
TUNING = {"displayName": "tuned", "maxTrialCount": 2, "studySpec": STUDY, "trialJobSpec": job_spec()}
FILES: list[dict[str, Any]] = [job(), {"displayName": "bare", **job_spec()}, PACKED, TUNING]
JUNK = st.one_of(
    st.none() | st.booleans() | st.integers(-2, 2**63) | st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", " ", "0", "-1", "5s", "x" * 300, "$.a['b']", "TRAINMASTER_REPLICA_ENVIRONMENT", "\u2028"]
    ),
    st.sampled_from([[], {}, [{}], {"x": {}}, [None], [[]], {"": 1}, {"a.b['c']": 1}]),
)


def places(value: object, path: Path = ()) -> Iterator[Path]:
    items: Iterator[tuple[Any, object]] = iter(())
    if isinstance(value, Mapping):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def property_names(schema: object) -> Iterator[str]:
    if isinstance(schema, Mapping):
        yield from schema.get("properties", {})
        for inner in schema.values():
            yield from property_names(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from property_names(inner)


THEIRS = {str(part) for document in FILES for path in places(document) for part in path}
OURS = set(property_names(STANDARDS.schemas["training_request.v1"])) - THEIRS
"""Words that only our own way to write a request has: in a fault about another they would mislead."""


def test_there_are_words_that_only_our_own_way_has() -> None:
    assert {"cluster", "chief", "model_name", "image", "timeout_s", "max_trials", "size_gb"} <= OURS


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_junk_anywhere_is_a_request_or_faults_in_the_files_own_words(data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from(FILES)))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(document))))
        document = changed(document, path, data.draw(JUNK))
        if not list(places(document)):
            break
    answer = answered(document, name="named")
    if isinstance(answer, Request):
        assert submission_of("run-1", answer.spec, TARGET).body["displayName"] == "run-1"
    elif dialect_of(document).name != "trainmaster":
        assert answer.faults
        for fault in answer.faults:
            assert OURS.isdisjoint(re.split(r"[.\[\]]", fault.path)), str(fault)
