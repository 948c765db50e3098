"""A document costs bounded work: too many values are refused unread, and checks that repeat share one budget."""

import json
import re
from typing import Any

import pytest

from tests.core.fuzz import seeds
from tests.core.fuzz.parsers import BUCKETS, REQUEST_RULES
from tests.core.parsed import answer_to
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, Refused
from trainmaster.orchestrator.core.documents.values import MAX_KEY_CHARS, MAX_VALUES, Document, Work, units
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.requests.reading import checked_request
from trainmaster.orchestrator.core.retraining.book import Book, may_hold
from trainmaster.orchestrator.core.retraining.reading import parse_rule
from trainmaster.orchestrator.core.retraining.request_check import RuleRequirements
from trainmaster.orchestrator.core.retraining.rule import Rule

OWN = {**seeds.OWN[0], "args": []}
FALLBACKS = [{"scheduling": {"spot": True}}, *({"region": f"r{number}"} for number in range(7))]
TOO_MUCH = "checking this document takes too much work"
UNTIL_S = 60
"""Each of these inputs took minutes, or hours, when its work grew with the square of its size."""


def faults_of(document: object) -> tuple[Fault, ...]:
    read = instance_of(Refused, answer_to(document, request_rules=REQUEST_RULES))
    return read.faults


def tuning(parameters: object) -> dict[str, Any]:
    return {"metrics": [{"id": "a", "goal": "maximize"}], "max_trials": 3, "parameters": parameters}


def rule_of(template: object, *, conditions: int = 10) -> Rule | Refused:
    when = [{"new_data": {"objects": f"gs://data/{number}/**"}} for number in range(conditions)]
    rule = {"when": when, "request_uri": f"gs://{BUCKETS.inbox}/templates/a.json"}
    return parse_rule(
        json.dumps(rule).encode(),
        dropped_name="rules/a.json",
        generation=1,
        requirements=RuleRequirements(requests=REQUEST_RULES, buckets=BUCKETS),
        book=Book(),
        template=json.dumps(template).encode(),
    )


@pytest.mark.parametrize("as_json", [True, False])
def test_a_document_of_too_many_values_is_refused(as_json: bool) -> None:
    assert parse_document(json.dumps([1] * (MAX_VALUES - 1)).encode(), as_json=as_json).faults == ()
    (fault,) = parse_document(json.dumps([1] * MAX_VALUES).encode(), as_json=as_json).faults
    assert f"more than {MAX_VALUES} values" in fault.problem


def test_yaml_is_refused_where_its_values_become_too_many() -> None:
    (fault,) = parse_document(b"- 1\n" * 60_000, as_json=False).faults
    assert fault.problem == f"broken YAML: more than {MAX_VALUES} values, line {MAX_VALUES}, column 3"


def test_yaml_of_many_directives_is_refused_unparsed() -> None:
    (fault,) = parse_document(b"".join(b"%%TAG !a%d! x\n" % n for n in range(20_000)), as_json=False).faults
    assert str(fault) == "$: more than 100 lines that begin with %; remove the directives"


@pytest.mark.parametrize("as_json", [True, False])
def test_a_key_that_would_make_long_paths_is_refused(as_json: bool) -> None:
    key = "k." * MAX_KEY_CHARS
    text = json.dumps({"a": {key: 1}}) if as_json else f"a:\n  ? {key}\n  : 1\n"
    read = parse_document(text.encode(), as_json=as_json)
    assert [(fault.path, fault.problem) for fault in read.faults] == [
        ("$.a", f"a key of more than {MAX_KEY_CHARS} characters")
    ]


@pytest.mark.timeout(UNTIL_S)
def test_a_rule_with_a_large_template_is_refused_before_it_is_checked_for_each_condition() -> None:
    values = list(range(26_000))
    rule = instance_of(
        Refused,
        rule_of(
            {**OWN, "tuning": tuning({"x": {"type": "discrete", "values": values}}), "fallbacks": FALLBACKS}
        ),
    )
    (fault,) = rule.faults
    assert f"more than {MAX_VALUES} values" in fault.problem


def test_the_conditions_of_a_rule_share_one_budget_with_its_template() -> None:
    args = ["--data=${data.newest_uri}", "--run=${champion.run_id:-none}", *(["--x=1"] * 2000)]
    rule = instance_of(Refused, rule_of({**OWN, "args": args}))
    (fault,) = rule.faults
    assert fault.path == "$.request_uri"
    assert TOO_MUCH in fault.problem
    assert isinstance(rule_of({**OWN, "args": args}, conditions=3), Rule)


def test_a_template_without_placeholders_is_checked_once_for_all_conditions() -> None:
    assert isinstance(rule_of({**OWN, "args": ["--x=1"] * 5000}), Rule)


def test_a_fallback_costs_only_what_it_can_change() -> None:
    document, work = {**OWN, "args": ["--x=1"] * 1000, "fallbacks": FALLBACKS}, Work()
    checked_request(Document(value=document), REQUEST_RULES, work=work)
    own = units({key: part for key, part in OWN.items() if key not in ("args", "env", "tuning")})
    assert units(document) <= work.spent <= units(document) + len(FALLBACKS) * own


def test_a_request_whose_checks_would_repeat_too_often_is_refused_with_one_fault() -> None:
    cluster = {**OWN["cluster"], "chief": {**OWN["cluster"]["chief"], "x": [1] * 4000}}
    (fault,) = faults_of({**OWN, "cluster": cluster, "fallbacks": FALLBACKS})
    assert (fault.path, fault.problem) == ("$", TOO_MUCH)
    assert "8 fallbacks" in fault.found
    assert "fewer fallbacks" in fault.repair


def test_only_the_first_of_thousands_of_misspelt_keys_suggest_a_repair() -> None:
    faults = faults_of({**OWN, **{f"scheduling{number:04}": 1 for number in range(3000)}})
    assert faults[0].repair == "did you mean 'scheduling'?"
    assert faults[150].repair == ""
    assert str(faults[-1]) == "$: at least 2800 more faults are not listed; fix these first"


@pytest.mark.timeout(UNTIL_S)
def test_values_that_a_parent_never_takes_cost_no_comparison_with_every_value() -> None:
    values, wrong = [f"value-{number:04}" for number in range(1000)], [f"valve_{n:04}" for n in range(3000)]
    child = {"when": wrong, "parameters": {"y": {"type": "double", "min": 0, "max": 1}}}
    parameters = {"x": {"type": "categorical", "values": values, "conditional": [child]}}
    paths = {fault.path for fault in faults_of({**OWN, "tuning": tuning(parameters)})}
    assert "$.tuning.parameters.x.conditional[0].when[0]" in paths


TOKEN_BEFORE = re.compile(r"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]*")
PART = "eyJhbGciOiJI"


@pytest.mark.timeout(UNTIL_S)
@pytest.mark.parametrize(
    "piece",
    ["eyJ-", f"{PART}.", f"{PART}.eyJ-", "a.", "a-", "a", "ab://", "a=", "-----BEGIN ", "projects/a/"],
)
def test_no_text_makes_the_search_for_secrets_slow(piece: str) -> None:
    read = Document(value=None, text=piece * (500_000 // len(piece)))
    assert secret_lines(read, ("*_TOKEN", "*_SECRET")) <= {1}


@pytest.mark.parametrize(
    "text",
    [
        f"{PART}abc.{PART}.x",
        f"--token-{PART}.{PART}.",
        f"x-eyJ-{PART}.{PART}.abc",
        f"a.{PART}.{PART}.b",
        f"{PART}.{PART}.{PART}.",
        f"_{PART}.{PART}.",
        f"eyJ-.{PART}.{PART}.",
        f"{PART}.eyJ.{PART}",
        f"ü{PART}.{PART}.",
    ],
)
def test_a_web_token_is_found_wherever_it_begins(text: str) -> None:
    found = bool(secret_lines(Document(value=None, text=text), ()))
    assert found == bool(TOKEN_BEFORE.search(text))


@pytest.mark.timeout(UNTIL_S)
def test_a_pattern_of_many_wildcards_is_matched_in_one_pass() -> None:
    assert not may_hold("gs://b/" + "**a" * 300 + "**c/x", "gs://c/")
    assert all(may_hold("gs://b/" + "**a" * 300, f"gs://b/{'a' * 1000}/") for _ in range(1000))
