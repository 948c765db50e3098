"""A plan is refused whole with its reasons, and decides alike whenever it is asked alike."""

from pathlib import Path

import pytest
import yaml

from trainstack.injections import BadInjectionsError, InjectionKind, Injections, plan_from

from .conftest import account_in

INSERT = "storage.objects.insert"
RECORD = ("b1/runs/r1.json",)


def injection(**fields: object) -> dict[str, object]:
    return {"name": "f1", "at": "storage.objects.insert", "kind": "error_before", **fields}


def struck(injections: Injections, count: int) -> list[bool]:
    return [injections.strike(INSERT, RECORD) is not None for _ in range(count)]


def test_every_fault_of_a_plan_is_reported_at_once() -> None:
    document = {
        "seed": "7",
        "injections": [
            {"at": "disk.write", "kind": "explode", "often": 1},
            injection(name="a b", code=418, seconds=-1, probability=2, skip=-1, times=1.5, match=""),
            "no injection",
            injection(name="twice"),
            injection(name="twice"),
            injection(name="killer", at="pubsub.deliver", kind="kill"),
        ],
    }
    with pytest.raises(BadInjectionsError) as refusal:
        plan_from(document)
    for expected in (
        "$.seed: expected an integer, found '7'",
        "$.injections[0].often: unknown field; an injection has name, at, kind",
        "$.injections[0].name: missing",
        "$.injections[0].at: expected SERVICE.METHOD or a glob of it",
        "$.injections[0].kind: expected one of error_before, error_after, delay",
        "$.injections[1].name: expected up to 100 letters",
        "$.injections[1].code: expected one of [400,",
        "$.injections[1].seconds: expected seconds from 0 to 600, found -1",
        "$.injections[1].probability: expected a number from 0 to 1, found 2",
        "$.injections[1].skip: expected an integer of at least 0, found -1",
        "$.injections[1].times: expected an integer of at least 0, found 1.5",
        "$.injections[1].match: expected a glob of at most 1024 characters, found ''",
        "$.injections[2]: expected an injection like",
        "$.injections: duplicate name 'twice', found 2 times",
        "$.injections[5].kind: pubsub.deliver supports only delay, duplicate, reorder, drop, found 'kill'",
    ):
        assert expected in str(refusal.value)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"name": "a"}, "$.at: "),
        ([{"name": "a"}], "$[0].at: "),
        ({"injections": [{"name": "a"}]}, "$.injections[0].at: "),
        ([injection(), injection()], "$: duplicate name 'f1', found 2 times"),
        ({"injections": [injection(), injection()]}, "$.injections: duplicate name 'f1', found 2 times"),
        ({"injections": 7}, "$.injections: expected a list, found 7"),
        (7, "$: expected an injection like"),
    ],
)
def test_a_fault_has_its_path_in_the_document_as_it_was_written(document: object, path: str) -> None:
    with pytest.raises(BadInjectionsError) as refusal:
        plan_from(document)
    assert str(refusal.value).startswith(path)


def test_some_are_let_pass_and_then_so_many_are_struck() -> None:
    injections = Injections(plan_from(injection(skip=1, times=2)))
    assert struck(injections, 5) == [False, True, True, False, False]
    account = account_in(injections.to_json(), "f1")
    assert (account["asked"], account["struck"]) == (5, 2)
    assert account["on"] == ["storage.objects.insert b1/runs/r1.json"] * 2


@pytest.mark.parametrize(
    ("fields", "at", "subjects", "is_asked"),
    [
        ({}, INSERT, RECORD, True),
        ({}, INSERT, ("id", *RECORD), True),
        ({}, INSERT, ("b1/status/r1.json",), False),
        ({}, "storage.buckets.get", RECORD, False),
        ({"at": "*", "kind": "error_after", "match": "*"}, "pubsub.streamingPull", (), False),
        ({"at": "*", "kind": "kill", "match": "*"}, INSERT, RECORD, False),
        ({"at": "*", "kind": "kill", "match": "*"}, "functions.f", (), True),
    ],
)
def test_an_injection_is_asked_only_where_place_match_and_kind_fit(
    fields: dict[str, object], at: str, subjects: tuple[str, ...], is_asked: bool
) -> None:
    default = {"at": "storage.objects.*", "kind": "delay", "match": "b1/runs/*"}
    injections = Injections(plan_from(injection(**{**default, **fields})))
    assert (injections.strike(at, subjects) is not None) is is_asked
    assert account_in(injections.to_json(), "f1")["asked"] == is_asked


def test_the_first_that_strikes_hides_the_call_from_those_behind_it() -> None:
    injections = Injections(plan_from([injection(name="a", times=1), injection(name="b")]))
    assert [getattr(injections.strike(INSERT, RECORD), "name", "") for _ in range(3)] == ["a", "b", "b"]
    assert account_in(injections.to_json(), "b")["asked"] == 2


def test_the_same_seed_strikes_the_same_calls_and_another_seed_others() -> None:
    def outcomes(seed: int) -> list[bool]:
        return struck(Injections(plan_from({"seed": seed, "injections": [injection(probability=0.3)]})), 300)

    assert outcomes(1) == outcomes(1)
    assert outcomes(1) != outcomes(2)
    assert 50 < sum(outcomes(1)) < 130


def test_the_plan_in_the_documents_is_one() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "local-faults.md").read_text()
    (block,) = (part.partition("```")[0] for part in text.split("```yaml\n")[1:] if part.startswith("seed:"))
    (one,) = plan_from(yaml.safe_load(block)).injections
    assert (one.name, one.kind, one.skip, one.times) == ("second-submit", InjectionKind.ERROR_BEFORE, 1, 1)
    kinds = text.partition("\n## Injections\n")[2].partition("\n## ")[0]
    assert all(f"\n| `{kind.value}` |" in kinds for kind in InjectionKind)


def test_an_injection_put_again_begins_a_new_account_and_the_others_keep_theirs() -> None:
    injections = Injections(plan_from([injection(name="a", skip=9), injection(name="b", skip=9)]))
    struck(injections, 3)
    injections.put(plan_from(injection(name="a", skip=5)))
    assert (
        account_in(injections.to_json(), "a")["asked"],
        account_in(injections.to_json(), "b")["asked"],
    ) == (0, 3)
    assert injections.remove("b")
    assert not injections.remove("b")
    injections.remove()
    assert not injections.names
