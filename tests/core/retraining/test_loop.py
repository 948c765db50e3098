"""Rules that would start each other forever are refused, and the loop is named."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.core.retraining_cases import document, dropped, faults
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.policy.policy import glob_matches
from trainmaster.orchestrator.core.retraining.book import Book, loops_of, may_hold
from trainmaster.orchestrator.core.retraining.rule import Rule


def after(model_name: str, event: str = "succeeded") -> dict[str, Any]:
    return {"upstream": {"model_name": model_name, "event": event}}


def watching(objects: str) -> dict[str, Any]:
    return {"new_data": {"objects": objects}}


def training(name: str, *when: dict[str, Any], book: Book | None = None, **request: Any) -> Rule | Refused:
    """A rule of this name that trains a model of this name."""
    return dropped(
        document(*when, request={"model_name": name, **request}), name=f"rules/{name}.yaml", book=book
    )


def book_of(*rules: Rule | Refused) -> Book:
    book = Book()
    for each in rules:
        assert isinstance(each, Rule), each
        book = book.with_rule(each)
    return book


def test_a_rule_that_waits_for_its_own_runs_is_refused() -> None:
    fault = faults(training("a", {"manual": {}}, after("a")))["$.when[1]"]
    assert fault.problem == "the rule would fire on its own output"
    assert fault.found == "a -> a: a waits for a run of a to succeed, which a trains"


def test_a_rule_that_watches_where_its_own_runs_write_is_refused() -> None:
    assert "$.when[0]" in faults(training("a", watching("gs://models/a/*/model/**")))
    assert "$.when[0]" in faults(training("a", watching("gs://models/**/export.json")))
    elsewhere: dict[str, Any] = {"output": {"prefix_uri": "gs://models/team"}}
    assert "$.when[0]" in faults(training("a", watching("gs://models/team/"), **elsewhere))
    assert isinstance(training("a", watching("gs://models/a/**"), **elsewhere), Rule)
    assert isinstance(training("a", watching("gs://models/b/**")), Rule)


def test_a_pattern_that_excludes_what_its_own_runs_write_closes_no_loop() -> None:
    def excluding(*patterns: str) -> Rule | Refused:
        watched = {"objects": "gs://models/**", "exclude": list(patterns)}
        return training("a", {"new_data": watched})

    assert isinstance(excluding("gs://models/a/"), Rule)
    assert "$.when[0]" in faults(excluding("gs://models/a/*"))
    assert "$.when[0]" in faults(excluding("gs://models/a/*/model/**"))


def test_a_loop_across_rules_is_named_step_by_step() -> None:
    book = book_of(
        training("b", after("a")),
        training("c", watching("gs://models/b/*/model/export.json")),
        training("d", after("x")),
    )
    fault = faults(training("a", after("c", "promoted"), after("c"), book=book))["$.when[1]"]
    assert fault.problem == "3 rules would start each other in an endless loop"
    assert fault.found.split("; ") == [
        "a -> b: b waits for a run of a to succeed, which a trains",
        "b -> c: c watches gs://models/b/*/model/export.json, and runs of b write under gs://models/b/",
        "c -> a: a waits for a run of c to succeed, which c trains",
    ]
    assert fault.repair == "break one of these steps: change this rule, or one of b, c"


def test_every_condition_that_closes_a_loop_is_a_fault() -> None:
    book = book_of(training("b", after("a")))
    found = faults(training("a", after("b"), after("x"), after("a"), watching("gs://models/b/"), book=book))
    assert sorted(found) == ["$.when[0]", "$.when[2]", "$.when[3]"]


def test_a_loop_is_reported_beside_other_faults_at_its_condition() -> None:
    found = faults(training("a", {"schedule": {"cron": "x"}}, after("a"), image="evil.example/a/b:c"))
    assert sorted(found) == ["$.request.image", "$.when[0].schedule.cron", "$.when[1]"]


def test_only_runs_that_may_become_champions_are_promoted() -> None:
    waiting = instance_of(Rule, training("a", after("a", "promoted")))
    ((step,),) = loops_of((), replace(waiting, makes=replace(waiting.makes, promotes=True)))
    assert str(step) == "a -> a: a waits for a to be promoted, which a trains"


def test_a_chain_without_an_end_at_its_start_is_no_loop() -> None:
    book = book_of(
        training("b", after("a")), training("c", after("b")), training("d", after("a"), after("c"))
    )
    assert isinstance(training("a", {"manual": {}}, book=book), Rule)


def test_a_new_generation_is_checked_in_place_of_the_one_before() -> None:
    book = book_of(training("a", {"manual": {}}), training("b", after("a")))
    assert "$.when[0]" in faults(training("a", after("b"), book=book))
    assert isinstance(training("b", {"manual": {}}, book=book), Rule)


def test_a_disabled_rule_closes_no_loop_until_it_is_enabled() -> None:
    body = document(after("a"), request={"model_name": "a"})
    assert isinstance(dropped({**body, "enabled": False}), Rule)
    assert isinstance(dropped(body), Refused)
    off = dropped(
        {**document(after("a"), request={"model_name": "b"}), "enabled": False}, name="rules/b.yaml"
    )
    assert isinstance(training("a", after("b"), book=book_of(off)), Rule)


names = st.text(alphabet="ab/", min_size=0, max_size=6)
patterns = st.lists(st.sampled_from(["a", "b", "/", "*", "**"]), max_size=6).map("".join)


@given(pattern=patterns, directory=names.map(lambda name: f"{name}/"), below=names)
def test_a_pattern_that_matches_an_object_may_hold_its_directory(
    pattern: str, directory: str, below: str
) -> None:
    if glob_matches(pattern, directory + below):
        assert may_hold(pattern, directory)


@given(pattern=patterns, directory=names.map(lambda name: f"{name}/"))
def test_a_pattern_that_may_hold_a_directory_takes_some_object_of_it(pattern: str, directory: str) -> None:
    if may_hold(pattern, directory):
        assert any(glob_matches(pattern, directory + below) for below in _names_below(pattern))


def _names_below(pattern: str) -> set[str]:
    """Every end of the pattern, its wildcards as nothing or as one letter: enough to meet it."""
    ends = {pattern[start:] for start in range(len(pattern) + 1)}
    return {end.replace("*", "") for end in ends} | {end.replace("**", "b").replace("*", "b") for end in ends}


def test_a_rule_that_watches_where_its_own_runs_save_their_models_is_refused() -> None:
    uri = "gs://models/exports/${run_id}"
    assert isinstance(training("a", watching("gs://models/other/"), model_uri=uri), Rule)
    (fault,) = faults(training("a", watching("gs://models/exports/"), model_uri=uri)).values()
    assert "runs of a write under gs://models/exports/" in str(fault)
