"""A user's document is read as written, and every way to spoil it has an answer."""

import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.generated import json_values
from trainmaster.orchestrator.core.documents.document import MAX_DEPTH, is_json, parse_document


def read(text: str, *, as_json: bool = False) -> object:
    document = parse_document(text.encode(), as_json=as_json)
    assert document.faults == ()
    return document.value


def told(text: str | bytes, *, as_json: bool = False) -> str:
    content = text if isinstance(text, bytes) else text.encode()
    faults = parse_document(content, as_json=as_json).faults
    assert faults
    return "\n".join(str(fault) for fault in faults)


def test_yaml_and_json_say_the_same() -> None:
    assert read("a: 1\nb: [x, 2.5, true, null]") == read(
        '{"a": 1, "b": ["x", 2.5, true, null]}', as_json=True
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2026-01-02\nb: 2026-01-02T03:04:05Z", {"a": "2026-01-02", "b": "2026-01-02T03:04:05Z"}),
        ('a: "x\\ty\\r\\n"', {"a": "x\ty\r\n"}),
        ("\ufeffa: 1", {"a": 1}),
        ("a:\n  b: no\n  c: [On]", {"a": {"b": False, "c": [True]}}),
        ("a: 1\n---\n", {"a": 1}),
        ("a: 1\n---", {"a": 1}),
        ("a: 1\n...\n", {"a": 1}),
        ("---\na: 1\n---\n---\n\n", {"a": 1}),
        ("a: 1\r\n---\r\n", {"a": 1}),
    ],
)
def test_dates_stay_text_and_marks_and_empty_documents_are_passed_over(text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("text", "as_json", "spelled"),
    [
        ("a:\n  b: no\n  c: [On]", False, {"$.a.b": "no", "$.a.c[0]": "On"}),
        ("a: {b: 3.10, c: [1.5, 7], d: +5}", False, {"$.a.b": "3.10", "$.a.d": "+5"}),
        ('{"a": {"b": 3.10, "c": [1.5, 1e3, 7]}}', True, {"$.a.b": "3.10", "$.a.c[1]": "1e3"}),
    ],
)
def test_the_spelling_of_a_boolean_or_number_is_kept(
    text: str, as_json: bool, spelled: dict[str, str]
) -> None:
    assert parse_document(text.encode(), as_json=as_json).spelled == spelled


@pytest.mark.parametrize("key", ["on", "no", "Yes", "null", "~", "1", "1.5", "2026-01-02"])
def test_a_key_that_yaml_takes_for_something_else_is_pointed_out(key: str) -> None:
    assert f'quote it: "{key}"' in told(f"{key}: value")


@pytest.mark.parametrize("number", ["010", "0x1F", "1:30", "1_000", "9" * 40])
def test_a_number_that_is_not_what_it_looks_like_is_pointed_out(number: str) -> None:
    fault = told(f"a: {number}")
    assert "$.a: a number that YAML 1.1 reads as" in fault
    assert f'quote it: "{number}"' in fault


@pytest.mark.parametrize("text", ["a: .inf", "a: .nan", "a: 1:30.5x", "a: !!float x"])
def test_infinities_and_no_numbers_are_refused_or_stay_text(text: str) -> None:
    document = parse_document(text.encode(), as_json=False)
    assert document.faults or document.value == {"a": "1:30.5x"}


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_json_without_finite_numbers_is_refused(constant: str) -> None:
    assert "not a finite number" in told(f'{{"a": {constant}}}', as_json=True)


def test_a_duplicate_key_is_refused_in_both() -> None:
    assert "$.a.b: duplicate key" in told("a:\n  b: 1\n  b: 2")
    assert "$.a.b: duplicate key" in told('{"a": {"b": 1, "b": 2}}', as_json=True)


def test_an_alias_is_read_as_what_it_stands_for() -> None:
    text = "pools:\n- &p {n: 1, on: &w [a, no]}\n- *p\n- {n: 2, on: *w}\n"
    read = parse_document(text.replace("no]", "b]").replace("on:", "of:").encode(), as_json=False)
    assert (read.faults, read.value) == (
        (),
        {"pools": [{"n": 1, "of": ["a", "b"]}, {"n": 1, "of": ["a", "b"]}, {"n": 2, "of": ["a", "b"]}]},
    )
    first, second, third = read.value["pools"]  # type: ignore[index]  # as compared above
    assert first is not second
    assert second["of"] is not third["of"]


def test_faults_below_an_alias_are_named_at_each_of_its_places() -> None:
    paths = [fault.path for fault in parse_document(b"a: &a [0x10]\nb: *a\n", as_json=False).faults]
    assert paths == ["$.a[0]", "$.b[0]"]


def test_an_alias_bomb_is_refused_before_it_is_built() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert "more than 10000 values, counting those that aliases stand for" in told("\n".join(lines))


def test_aliases_count_as_deep_as_what_they_stand_for() -> None:
    one = "[" * 20 + "x" + "]" * 20
    ladder = f"a: &a {one}\nb: {'[' * 10}*a{']' * 10}\n"
    assert parse_document(ladder.encode(), as_json=False).faults == ()
    assert "nested deeper than 32 levels, line 2" in told(f"a: &a {one}\nb: {'[' * 12}*a{']' * 12}\n")


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: [*a]}", "a: &a [&b [*a], *b]"])
def test_a_document_that_contains_itself_is_refused(text: str) -> None:
    assert "the YAML alias *a is inside what it stands for" in told(text)


@pytest.mark.parametrize("text", ["a: *b\nb: &b 1", "a: *a"])
def test_an_alias_of_nothing_is_refused(text: str) -> None:
    assert "found undefined alias" in told(text)


DEEP = ["[" * 200_000, '{"a":' * 100_000, "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2)]


@pytest.mark.parametrize(
    ("text", "as_json"),
    [*itertools.product(DEEP, [True, False]), ("- " * 50_000, False), ("{a: " * 10_000, False)],
)
def test_deep_nesting_is_refused(text: str, as_json: bool) -> None:
    assert parse_document(text.encode(), as_json=as_json).faults


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ('# c\na: "x\nb: 1\n\n', 2, 4, "no closing quote"),
        ("a: 1\nb: [x, 'y]\nc: 1\n", 2, 8, "no closing quote"),
        ('a: "x\nb: 1\nc:\n- "y"\n', 1, 4, "the text in quotes from line 1, column 4 ends only on line 4"),
        ("a: 'x\nb: 'y'\n", 1, 4, "ends only on line 2; close the quote that begins here"),
        ("name:x\n\n# c\nimage: y\n", 1, 1, "no space after the colon of 'name'"),
        ("a: 1\nname:x\nb: 2\n", 2, 1, "write a space after 'name:'"),
        ("a:\n  name:x\n  b: 2\n", 2, 3, "no space after"),
        ("a:\n- b: 1\n- name:x\n  b: 2\n", 3, 3, "no space after"),
        ("%YAML 1.1\nname:x\n", 2, 1, "no space after"),
        ("a:\n  b: 1\n  name:x\n", 3, 3, "no space after"),
        ("name: x\na: 1\n b: 2\n", 3, 3, "mapping values are not allowed"),
        ("a: gs://x\n b: 2\n", 2, 3, "mapping values are not allowed"),
    ],
)
def test_a_common_mistake_is_marked_where_it_is(text: str, line: int, column: int, words: str) -> None:
    (fault,) = parse_document(text.encode(), as_json=False).faults
    assert fault.place is not None
    assert (fault.place.line, fault.place.column) == (line, column)
    assert words in str(fault)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "not UTF-8 text"),
        (b"\xff\xfea\x00", "not UTF-8 text"),
        (b"a: \x00", "a character that YAML does not allow"),
        (b"", "the document is empty; for a request to start from: trainmaster init"),
        (b"  \n# only a comment\n", ""),
        (b"a: [1, 2", "broken YAML"),
        (b"a:\n\t- b", "spaces, not tabs"),
        (b"a: b: c", "line 1, column"),
        (b"a: !!python/object/apply:os.system [ls]", "is not supported"),
        (b"a: !secret x", "is not supported"),
        (b"<<: {a: 1}", "merging"),
        (b"? [a]\n: b", "a list or a mapping used as a key"),
        (b"a: 1\n---\nb: 2", "more than one YAML document; write one document per file"),
    ],
)
def test_junk_is_answered_in_plain_words(content: bytes, words: str) -> None:
    document = parse_document(content, as_json=False)
    if not words:
        assert document.value is None
        return
    assert words in told(content)


@pytest.mark.parametrize("text", ["{", "nope", '{"a": 1,}', "[1] 2"])
def test_broken_json_is_answered_with_its_place(text: str) -> None:
    assert "broken JSON" in told(text, as_json=True)


CHARACTERS = st.characters(exclude_categories=("Cs", "Cc"), include_characters="\t\n\r")
NUMBERS = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = json_values(st.text(CHARACTERS, max_size=20), NUMBERS)


@given(VALUES.filter(lambda value: value is not None))
def test_what_json_writes_is_read_back(value: object) -> None:
    document = parse_document(json.dumps(value).encode(), as_json=True)
    assert document.faults == ()
    assert document.value == value or math.isclose(float(str(value)), float(str(document.value)))


@pytest.mark.parametrize(
    ("text", "as_json", "path"),
    [
        ('{"args": ["\\ud800"]}', True, "$.args[0]"),
        ('{"env": {"A": "x\\u0000y"}}', True, "$.env.A"),
        ('args: ["\\0"]', False, "$.args[0]"),
        ('{"a\\u0007": 1}', True, "$['a\\x07']"),
    ],
)
def test_characters_that_no_service_accepts_are_a_fault(text: str, as_json: bool, path: str) -> None:
    (fault,) = parse_document(text.encode(), as_json=as_json).faults
    assert fault.problem.startswith("a character that is not allowed, U+")
    assert fault.path == path or as_json


@pytest.mark.parametrize(
    ("content", "is_it"),
    [(b'{"a": 1}', True), (b' {"a": 1}', True), (b"{a: 1}", False), (b"a: 1", False), (b"{", False)],
)
def test_json_is_distinguished_from_yaml_by_its_braces_and_quotes(content: bytes, is_it: bool) -> None:
    assert is_json(content) is is_it


@pytest.mark.parametrize(("text", "closing"), [('{"a": 1,\n}', "}"), ('{"a": [1, 2 , ]}', "]")])
def test_a_comma_before_a_closing_bracket_of_json_is_named(text: str, closing: str) -> None:
    (fault,) = parse_document(text.encode(), as_json=True).faults
    assert fault.problem == f"broken JSON: a comma before the closing {closing}"
    assert fault.repair == "remove the comma before it"
