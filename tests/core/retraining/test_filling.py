"""Values go into a request as text, whatever they hold: nothing is read, run or filled a second time."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.core.parsed import parse_request
from tests.core.retraining_cases import NOON, REQUEST, dropped, rule
from tests.core.shipped import NAMES as SHIPPED_NAMES
from tests.core.shipped import REQUEST_RULES
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.requests import placeholders
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.retraining.condition import CONDITIONS, condition_from
from trainmaster.orchestrator.core.retraining.filling import (
    NAMES,
    VALUE_MAX_CHARS,
    Placeholder,
    filled_request,
    find_placeholders,
    names_about,
    place_faults,
    unfit,
    why_unfilled,
)
from trainmaster.orchestrator.core.retraining.firing import request_of_firing
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.state import Firing

plain = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\u2028\u2029\ufffe\uffff"), max_size=60
)


def firing(**values: str) -> Firing:
    return Firing(
        number=1,
        run_id="watch-20260304t120000-0123456789",
        condition=rule({"manual": {}}).conditions[0].kind,
        at=NOON,
        generation=1,
        event_id="order/1",
        values={name.replace("__", "."): text for name, text in values.items()},
    )


def test_every_condition_has_a_sample_of_each_place_that_it_alone_fills() -> None:
    conditions = [
        condition_from(each)
        for each in (
            {"new_image": {"repository": "a/b", "tag": "*"}},
            {"alert": {"policy": "p"}},
            {"upstream": {"model_name": "m", "event": "promoted"}},
        )
    ]
    for each in conditions:
        assert each.sample_values("models").keys() == names_about(each.subject)
    others = CONDITIONS.keys() - {each.kind for each in conditions}
    assert not any(CONDITIONS[kind].subject for kind in others)
    assert NewData(objects="gs://b/").data_values().keys() == names_about("data")


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("${rule.id}", "r"),
        ("a ${rule.id} b ${rule.id}c", "a r b rc"),
        ("${data.count:-7}", "7"),
        ("${data.count:-}", ""),
        ("${rule.id:-never}", "r"),
        ("${data.count:-a:-b}", "a:-b"),
        ("$${rule.id}", "${rule.id}"),
        ("$$${rule.id}", "$${rule.id}"),
        ("$rule.id {rule.id} $(RULE) $", "$rule.id {rule.id} $(RULE) $"),
    ],
)
def test_a_place_is_filled_as_text(text: str, becomes: str) -> None:
    assert filled_request([text], {"rule.id": "r"}) == [becomes]


@pytest.mark.parametrize(
    "value",
    [
        "${champion.run_id}", "$${rule.id}", "a: {b: c}", "- x\\n- y", '", "image": "evil', "*alias",
        "!!python/object/apply:os.system [id]", "'; drop table runs; --", "$(rm -rf /)", "no", "007",
    ],
)  # fmt: skip
def test_a_value_is_never_read_as_anything_else(value: str) -> None:
    sound = rule({"alert": {"policy": "*"}}, request={"args": ["--why=${alert.summary}", "${rule.id}"]})
    content = instance_of(
        bytes, request_of_firing(sound, firing(alert__summary=value, rule__id="watch"), None, {})
    )
    args = json.loads(content)["args"]
    assert json.loads(content) == {**REQUEST, "args": args}
    # As the program is given them.
    assert [placeholders.text_with_values(word, run_id="run-1") for word in args] == [
        f"--why={value}",
        "watch",
    ]


@given(value=st.lists(st.sampled_from(["${project}", "$${region}", "$", "a", "${"])).map("".join))
def test_no_value_becomes_a_placeholder_of_the_deployment(value: str) -> None:
    variables = {"A": "${alert.summary}", "B": "$${project}"}
    sound = rule({"alert": {"policy": "*"}}, request={"env": variables})
    content = instance_of(bytes, request_of_firing(sound, firing(alert__summary=value), None, SHIPPED_NAMES))
    request = instance_of(Request, parse_request(content, as_json=True, request_rules=REQUEST_RULES))
    assert request.document["env"] == {"A": value, "B": "${project}"}


def test_the_deployments_placeholders_are_filled_in_all_of_a_rule_and_in_its_template() -> None:
    image = "${region}-docker.pkg.dev/${project}/other/image:v1"
    data = {"new_data": {"objects": "gs://${project}-data/**"}}
    sound = rule(data, request={"image": image, "args": ["${project}", "$${project}"]})
    assert sound.new_data[0].objects == "gs://my-project-data/**"
    assert sound.document["request"]["image"] == "us-central1-docker.pkg.dev/my-project/other/image:v1"
    assert sound.document["request"]["args"] == ["my-project", "$${project}"]
    template = yaml.safe_dump({**REQUEST, "image": image}).encode()
    named = {"when": [{"manual": {}}], "request_uri": "gs://${inbox_bucket}/t.yaml"}
    by_name = instance_of(Rule, dropped(named, template=template))
    content = instance_of(bytes, request_of_firing(by_name, firing(), template, SHIPPED_NAMES))
    assert json.loads(content)["image"] == "us-central1-docker.pkg.dev/my-project/other/image:v1"


RUNS = ["${run_id}", "$${HOME}", "<${rule.id}>"]


def test_the_placeholders_of_a_run_stay_where_its_job_fills_them() -> None:
    ours = {"model_uri": "gs://b/${run_id}/${trial}", "args": RUNS, "env": {"A": "$${HOME}"}}
    after = filled_request({**REQUEST, **ours}, {"rule.id": "${run_id}"})
    args = ["${run_id}", "$${HOME}", "<$${run_id}>"]
    assert after == {**REQUEST, **ours, "args": args, "env": {"A": "${HOME}"}}
    assert [placeholders.text_with_values(word, run_id="run-1") for word in args] == [
        "run-1",
        "${HOME}",
        "<${run_id}>",
    ]


@pytest.mark.parametrize("document", [{**REQUEST, "labels": {"a": "${run_id}"}}, {"jobSpec": {"args": RUNS}}])
def test_the_placeholders_of_a_run_are_no_places_anywhere_else(document: dict[str, Any]) -> None:
    (fault,) = place_faults(document, NAMES)
    assert (fault.problem, fault.found) == ("unknown placeholder", "'${run_id}'")


@given(value=plain)
def test_any_value_stays_inside_its_string(value: str) -> None:
    before = {
        "a": ["<${alert.summary}>", {"b": "${alert.summary}"}],
        "${alert.summary}": 1,
        "n": 3,
        "t": True,
    }
    after = filled_request(before, {"alert.summary": value, "rule.id": "r"})
    assert after == {"a": [f"<{value}>", {"b": value}], "${alert.summary}": 1, "n": 3, "t": True}
    assert json.loads(json.dumps(after)) == after


@given(value=st.text(max_size=40))
def test_a_value_is_fit_exactly_when_it_is_plain_text(value: str) -> None:
    controls = any(
        ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u2028\u2029\ufffe\uffff" for char in value
    )
    assert bool(unfit(value)) == controls


@pytest.mark.parametrize(
    "value", ["a\nb", "a\x00", "\x1b[31m", "\x85", "\u2028", "x" * (VALUE_MAX_CHARS + 1)]
)
def test_an_unfit_value_refuses_the_firing_and_says_why(value: str) -> None:
    placeholders = (Placeholder(name="alert.summary"),)
    assert "${alert.summary}" in why_unfilled(placeholders, {"alert.summary": value})
    with pytest.raises(ValueError, match="alert"):
        filled_request("${alert.summary}", {"alert.summary": value})
    assert not why_unfilled((), {"alert.summary": value})


def test_the_longest_value_is_fit() -> None:
    assert filled_request("${rule.id}", {"rule.id": "x" * VALUE_MAX_CHARS}) == "x" * VALUE_MAX_CHARS


def test_a_missing_value_without_a_default_has_a_repair() -> None:
    reason = why_unfilled((Placeholder(name="champion.model_uri"),), {})
    assert reason.endswith("${champion.model_uri:-none}")


def test_places_are_found_at_any_depth_and_never_in_keys() -> None:
    deep: Any = "${rule.id}"
    for number in range(200):
        deep = {f"k{number}": [deep]}
    assert find_placeholders(deep) == (Placeholder(name="rule.id"),)
    (fault,) = place_faults({"a": {"${rule.id}": 1}}, NAMES)
    assert fault.path == "$.a['${rule.id}']"


def test_the_same_firing_gives_the_same_bytes() -> None:
    sound = rule({"manual": {}}, request={"args": ["${rule.id}"]})
    one = instance_of(bytes, request_of_firing(sound, firing(rule__id="watch"), None, {}))
    assert one == request_of_firing(sound, firing(rule__id="watch"), None, {})


def test_a_template_is_filled_as_it_is_when_the_rule_fires() -> None:
    uri = "gs://inbox/templates/t.yaml"
    sound = instance_of(
        Rule,
        dropped(
            {"when": [{"manual": {}}], "request_uri": uri},
            template=yaml.safe_dump({**REQUEST, "args": []}).encode(),
        ),
    )
    changed = b"model_name: cassava\nargs: ['${rule.id}']\n"
    assert (
        request_of_firing(sound, firing(rule__id="watch"), changed, {})
        == b'{"model_name": "cassava", "args": ["watch"]}'
    )
    for template, says in (
        (None, "does not exist"),
        (b"", "empty"),
        (b"model_name: cassava\na: ['${data.count}']", "has no value now"),
        (b"model_name: other", "no longer names the model"),
        (b"model_name: cassava\noutput: {prefix_uri: gs://models/x}", "no longer names the model, output"),
        (b"model_name: cassava\nchampion: {}", "champion"),
    ):
        refused = instance_of(Refused, request_of_firing(sound, firing(), template, {}))
        assert says in refused.faults[0].problem
