"""Whatever is dropped as a rule, it is accepted or refused, and what is accepted can be kept and used."""

import copy
import json
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.retraining_cases import BUCKETS, CHAMPION, DAY, NOON, batch, dropped, faults, fresh, pictures
from tests.core.standards import ROOT
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.requests.request import Refused
from trainmaster.orchestrator.core.retraining.book import Book, book_in
from trainmaster.orchestrator.core.retraining.decision import Facts, decide_on_tick
from trainmaster.orchestrator.core.retraining.reading import template_uri
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.state import folded

EVERYTHING: dict[str, Any] = yaml.safe_load(
    (ROOT / "schemas/examples/valid/retraining_rule.v1.everything.yaml").read_text()
)
TUNING: dict[str, Any] = yaml.safe_load(
    (ROOT / "schemas/examples/valid/training_request.v1.tuning.yaml").read_text()
)
texts = st.sampled_from(
    ["", "x", "${", "${rule.id}", "${image.uri}", "${data.count:-}", "$${", "gs://", "gs://b/", "gs:///x", "0 0 * * *",
     "Europe/Paris", "a/b@sha256:x", "*", "**", "\x00", "ü" * 300, "-1", "é\ud800".encode("utf-8", "replace").decode()]
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


def places_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, part in inner for found in places_of(part, (*path, key)))]


def changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copied: Any = copy.deepcopy(document)
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copied


def holds(document: Any) -> None:
    """The promise: a rule or faults, each with path and problem; and a rule goes all the way."""
    read = dropped(json.dumps(document), name="rules/fuzz.json")
    if isinstance(read, Refused):
        assert read.faults
        assert all(fault.path.startswith("$") and fault.problem for fault in read.faults)
        return
    book = Book().with_rule(read)
    assert book_in(json.loads(json.dumps(encoded(book)))) == book
    state = folded(fresh(read), read, [batch("x", pictures(3))])
    decide_on_tick(read, state, Facts(now=NOON + DAY, champion=CHAMPION))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_rule_with_anything_anywhere_is_accepted_or_refused(data: st.DataObject) -> None:
    document: Any = EVERYTHING
    for _ in range(data.draw(st.integers(1, 2))):
        if isinstance(document, dict):
            document = changed(document, data.draw(st.sampled_from(places_of(document))), data.draw(values))
    holds(document)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_gcloud_request_with_anything_anywhere_is_accepted_or_refused(data: st.DataObject) -> None:
    vertex: dict[str, Any] = {
        "displayName": "cassava",
        "studySpec": {
            "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
            "parameters": [{"parameterId": "lr", "doubleValueSpec": {"minValue": 0.1, "maxValue": 1}}],
        },
        "maxTrialCount": 1,
        "parallelTrialCount": 1,
        "trialJobSpec": {
            "workerPoolSpecs": [
                {
                    "machineSpec": {"machineType": "n1-standard-8"},
                    "replicaCount": 1,
                    "containerSpec": {
                        "imageUri": "gcr.io/my-project/b:c",
                        "args": ["--from=${champion.model_uri:-x}"],
                    },
                }
            ]
        },
    }
    document = {"when": [{"manual": {}}], "request": vertex}
    assert isinstance(dropped(json.dumps(document), name="rules/fuzz.json"), Rule)
    holds(changed(document, data.draw(st.sampled_from(places_of(document))), data.draw(values)))


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_refused_and_name_no_template(content: bytes) -> None:
    text = content.decode("utf-8", "replace")
    assert faults(dropped(text))
    for name in ("rules/a.yaml", "rules/a.json"):
        template_uri(content, name, BUCKETS)


@settings(max_examples=60, deadline=None)
@given(template=st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()))
def test_any_template_is_refused_at_its_name(template: bytes) -> None:
    refused = dropped({"when": [{"manual": {}}], "request_uri": "gs://inbox/t.yaml"}, template=template)
    assert set(faults(refused)) == {"$.request_uri"}


def test_a_tuning_is_a_request_like_any_other() -> None:
    holds({"when": [{"manual": {}}], "request": TUNING})
