"""Findings of fuzzing: each input broke something once, and is refused or read in plain words now."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.core.fuzz import seeds
from tests.core.fuzz.parsers import BUCKETS, NOON, REQUEST_RULES, RuleFile, feed_request, feed_rule
from tests.core.fuzz.verdicts import Verdict
from tests.core.parsed import answer_to, parse_request
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.core.completion.model import ModelDirectory, ModelFile, find_model
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import MAX_COLLECTED, Refused
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import Envelope, PubsubMessage
from trainmaster.orchestrator.core.events.self_test import parse_dry_run
from trainmaster.orchestrator.core.requests.incoming import Ignored, parse_upload
from trainmaster.orchestrator.core.retraining.arrivals import parse_arrived_object
from trainmaster.orchestrator.core.retraining.signals import ParsedNotice, parse_alert, parse_notice


def only_fault(content: bytes, *, as_json: bool = False) -> str:
    (fault,) = parse_document(content, as_json=as_json).faults
    return str(fault)


def message(document: Any) -> PubsubMessage:
    return PubsubMessage(message_id="m", publish_time=NOON, attributes={}, data=json.dumps(document).encode())


@pytest.mark.parametrize(
    "content", [b'a: "\\UFFFFFFFF"', b'a: "\\uD800"', b"%YAML " + b"9" * 5000 + b".1\n---\na: 1\n"]
)
def test_yaml_that_broke_a_reader_is_broken_yaml(content: bytes) -> None:
    assert "broken YAML" in only_fault(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a: \x1b[31m", "U+001B"),
        (b"a: !!bool perhaps", "$.a: not a boolean; found 'perhaps'"),
        (b"a: !<%0asevere> x", "is not supported"),
    ],
)
def test_a_tag_or_character_that_misled_is_named_in_one_line(content: bytes, words: str) -> None:
    assert words in only_fault(content)
    assert "\n" not in only_fault(content)


def test_values_nested_too_deep_to_walk_are_only_refused() -> None:
    deep = b'{"labels": ' + b"[" * 900 + b"]" * 900 + b"}"
    read = instance_of(Refused, parse_request(deep, as_json=True, request_rules=REQUEST_RULES))
    assert "nested deeper than 32 levels" in str(read.faults[0])


def test_an_accelerator_of_a_legacy_job_may_be_a_list() -> None:
    config = {"imageUri": "gcr.io/my-project/a:1", "acceleratorConfig": {"type": ["K80"], "count": 1}}
    job = {"trainingInput": {"scaleTier": "CUSTOM", "masterType": "n1-standard-8", "masterConfig": config}}
    assert isinstance(answer_to(job, request_rules=REQUEST_RULES), Refused)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        None,
        {"masterConfig": {"imageUri": "gcr.io/my-project/a:1"}, "workerConfig": {"imageUri": 3}, "args": 7},
        {"scaleTier": ["BASIC"], "runtimeVersion": ["2.1"], "hyperparameters": {"params": [3]}},
    ],
)
def test_a_legacy_job_of_other_kinds_of_values_is_refused_at_its_places(spec: object) -> None:
    job = {"trainingInput": spec, "jobId": None}
    assert feed_request(json.dumps(job).encode()) is Verdict.REFUSED


def test_a_scale_tier_cannot_break_the_line_of_its_faults() -> None:
    config = {
        "imageUri": "gcr.io/my-project/a:1",
        "acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": "1"},
    }
    job = {"trainingInput": {"scaleTier": "CUSTOM\n/x", "masterConfig": config, "workerConfig": config}}
    read = instance_of(Refused, answer_to(job, request_rules=REQUEST_RULES))
    assert any("sets its own machines" in str(fault) for fault in read.faults)
    assert all(str(fault).isprintable() for fault in read.faults)


def test_the_name_of_a_template_cannot_break_the_line_of_a_rules_faults() -> None:
    uri = f"gs://{BUCKETS.inbox}/templates/a\u2028\tb.yaml"
    content = json.dumps({"when": [{"manual": {}}], "request_uri": uri}).encode()
    assert feed_rule(RuleFile(name="rules/a.json", content=content, template=b"\xff")) is Verdict.REFUSED


def test_the_values_of_a_notice_stay_in_one_line() -> None:
    data = {"run_id": "r\n-2", "state": "succeeded", "model_name": "m\x1b[31m"}
    heard = instance_of(
        ParsedNotice, parse_notice(message({"id": "i", "type": "trainmaster.run.succeeded.v1", "data": data}))
    )
    assert all(text.isprintable() for text in present(heard.signal).values.values())


def test_the_keys_of_what_is_no_alert_stay_in_one_line() -> None:
    assert instance_of(
        Ignored, parse_alert(message({'x\r\n{"severity": "EMERGENCY"}': 1}))
    ).reason.isprintable()


@pytest.mark.parametrize("name", ["requests/\ud800.yaml", "requests/a\nb.yaml", f"requests/{'ü' * 600}.yaml"])
def test_an_event_about_an_object_that_cannot_be_is_malformed(name: str) -> None:
    fields = {"bucket": "inbox", "name": name, "generation": "1"}
    event = Envelope(id="9", type="t", source="s", subject="", time=NOON, received_at=NOON, data=fields)
    for read in (lambda: parse_upload(event, "inbox"), lambda: parse_arrived_object(event)):
        with pytest.raises(EventMalformed) as malformed:
            read()
        assert str(malformed.value).isprintable()
    fine = replace(event, data={**fields, "name": "requests/../\x1b[31m\u202e.yaml"})
    assert parse_arrived_object(fine).name == "requests/../\x1b[31m\u202e.yaml"


def test_a_dry_run_with_an_unusable_id_gets_its_own() -> None:
    asked = replace(message({}), attributes={"dry_run": "true"})
    tried = [parse_dry_run(replace(asked, message_id=message_id)) for message_id in ("\ud800", "\ud801")]
    assert len({each.self_test_id for each in tried if each is not None}) == 2


def problems(**changes: Any) -> tuple[str, ...]:
    manifest = json.dumps({**seeds.MANIFESTS[0], **changes}).encode()
    files = (ModelFile(path="saved_model.pb", size_bytes=10, generation=1),)
    found = find_model(
        ModelDirectory(uri=seeds.MODEL_URI, files=files, manifest=manifest), seeds.EXPORT_SCHEMA
    )
    assert found.model is not None
    return found.problems


def test_a_metric_too_large_for_any_float_is_a_training_that_diverged() -> None:
    assert problems(metrics={"loss": 10**400}) == ("the metric loss is inf: the training diverged",)


def test_a_manifest_nested_too_deep_is_not_believed() -> None:
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    assert problems(class_names=deep) == ("export.json was ignored: it is nested deeper than 32 levels",)


def test_the_paths_of_a_manifest_stay_in_one_line() -> None:
    file = {**seeds.MANIFESTS[0]["files"][0], "path": "a\n\x1b[31m"}
    (problem,) = problems(files=[file])
    assert problem.isprintable()


@pytest.mark.timeout(30)
def test_a_key_that_stands_often_is_found_in_one_look() -> None:
    content = ("{" + ",".join(f'"k{number // 2}":1' for number in range(9_000)) + "}").encode()
    assert len(parse_document(content, as_json=True).faults) == MAX_COLLECTED
