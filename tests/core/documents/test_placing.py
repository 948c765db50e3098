"""A fault is marked at the key or value of the user's text that it is about."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.generated import json_values
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.document import Document, parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, json_path
from trainmaster.orchestrator.core.documents.places import TEXT_MAX_CHARS, TextPlace
from trainmaster.orchestrator.core.documents.placing import faults_with_places, lines_of_fault

YAML = """\
# a comment
model_name: m
args:
  - --a
  - {b: "ünï", "c d": 2}
cluster:
  chief:
    machine: n1
    note: |
      one
      two
  workers:
"""
JSON = """\
{
  "model_name": "m", "args": ["--a", {"b": 1}],
  "cluster": {
    "chief": {"machine": "n1"}
  }
}
"""


def marked(read: Document, path: str, *, is_key: bool = False) -> tuple[int, str]:
    """The line of the fault at the path, and the text that is marked on it."""
    (fault,) = faults_with_places([Fault(path=path, problem="wrong", is_key=is_key)], read)
    place = present(fault.place)
    start = place.column - place.text_column
    return place.line, present(place.text)[start : start + place.length]


@pytest.mark.parametrize(
    ("document", "path", "is_key", "line", "text"),
    [
        (YAML, "$.model_name", False, 2, "m"),
        (YAML, "$.model_name", True, 2, "model_name"),
        (YAML, "$.args", False, 3, "args"),
        (YAML, "$.args[0]", False, 4, "--a"),
        (YAML, "$.args[1].b", False, 5, '"ünï"'),
        (YAML, "$.args[1]['c d']", True, 5, '"c d"'),
        (YAML, "$.cluster.chief", False, 7, "chief"),
        (YAML, "$.cluster.chief.machine", False, 8, "n1"),
        (YAML, "$.cluster.chief.note", False, 9, "|"),
        (YAML, "$.cluster.workers", False, 12, "workers"),
        (YAML, "$.cluster.chief.absent", False, 7, "chief"),
        (YAML, "$.cluster.workers.machine", False, 12, "workers"),
        (YAML, "$.absent", False, 2, "m"),
        (JSON, "$.args[0]", False, 2, '"--a"'),
        (JSON, "$.args[1].b", False, 2, "1"),
        (JSON, "$.args[1].b", True, 2, '"b"'),
        (JSON, "$.args", False, 2, '"args"'),
        (JSON, "$.cluster.chief.machine", False, 4, '"n1"'),
        (JSON, "$.cluster.chief.absent", False, 4, '"chief"'),
        (JSON, "$.absent", False, 1, "{"),
    ],
)
def test_the_mark_is_at_the_value_or_the_key_above(
    document: str, path: str, is_key: bool, line: int, text: str
) -> None:
    read = parse_document(document.encode(), as_json=document == JSON)
    assert marked(read, path, is_key=is_key) == (line, text)


TEXT = st.text('ab {}[],:"\\\n\t\u2028é', max_size=6)
DOCUMENTS = json_values(TEXT)


def scalars(value: object, path: tuple[str | int, ...] = ()) -> Sequence[tuple[str, object]]:
    if isinstance(value, dict):
        return [each for key, part in value.items() for each in scalars(part, (*path, key))]
    if isinstance(value, list):
        return [each for index, part in enumerate(value) for each in scalars(part, (*path, index))]
    return [(json_path(path), value)]


@given(st.dictionaries(TEXT, DOCUMENTS, max_size=3), st.sampled_from([None, 2]))
def test_the_mark_in_json_is_at_the_paths_value(document: dict[str, object], indent: int | None) -> None:
    read = parse_document(json.dumps(document, indent=indent).encode(), as_json=True)
    for path, value in scalars(document) if not read.faults else ():
        if path != "$" and len(json.dumps(value)) < TEXT_MAX_CHARS // 2:
            assert json.loads(marked(read, path)[1]) == value


@pytest.mark.parametrize(
    ("content", "as_json", "place"),
    [
        (b"a: 1\nb: [1\n", False, (3, 1)),
        (b"a: 1\n\tb: 1\n", False, (2, 1)),
        (b"a: 1\nb: *x\n", False, (2, 4)),
        (b"a: 1\nb: \x07\n", False, (2, 4)),
        (b'{"a": 1,\n "b" 2}', True, (2, 6)),
        (b"a: 1\nb: \xff", False, (2, 4)),
        (b"a: 1\nb: 1\na: 2\n", False, (3, 1)),
        (b'{"a": 1,\n "b": {"c": 1, "c": 2}}', True, (2, 16)),
        (b'{"a": [\n1, NaN]}', True, (2, 4)),
        (b"a: 0777\n", False, (1, 4)),
        (b"? [a]\n: 1\nb: !x 1\n", False, (3, 4)),
    ],
)
def test_a_fault_of_the_text_has_its_place(content: bytes, as_json: bool, place: tuple[int, int]) -> None:
    read = parse_document(content, as_json=as_json)
    found = [fault.place for fault in faults_with_places(read.faults, read)]
    assert place in [(each.line, each.column) for each in found if each is not None]


def test_line_ends_are_counted_as_the_parser_counts_them() -> None:
    text = "a: 1\r\nb: 1\rc: 1\u2028d: 1\n"
    read = parse_document(text.encode(), as_json=False)
    assert [marked(read, f"$.{key}", is_key=True) for key in "abcd"] == list(enumerate("abcd", 1))
    read = parse_document(b'{"a": 1,\r\n"b": "\xe2\x80\xa8", "c": 3}', as_json=True)
    assert marked(read, "$.c") == (2, "3")


def test_a_long_line_is_cut_around_the_place_and_a_control_character_keeps_its_column() -> None:
    read = parse_document(json.dumps({f"key{n}": n for n in range(10_000)}).encode(), as_json=True)
    assert marked(read, "$.key9000") == (1, "9000")
    (fault,) = faults_with_places([Fault(path="$.key9000", problem="wrong")], read)
    assert fault.place is not None
    assert len(fault.place.text or "") == TEXT_MAX_CHARS
    assert fault.place.text_column > 1
    read = parse_document(b"a: {b:\t1, c: 2}", as_json=False)
    assert marked(read, "$.a.c") == (1, "2")


def test_faults_of_the_whole_document_and_of_values_without_a_text_have_no_place() -> None:
    read = parse_document(b"a: 1", as_json=False)
    assert [fault.place for fault in faults_with_places([Fault(path="$", problem="wrong")], read)] == [None]
    values = Document(value={"a": 1})
    assert [fault.place for fault in faults_with_places([Fault(path="$.a", problem="wrong")], values)] == [
        None
    ]


def test_a_report_has_the_place_as_fields() -> None:
    read = parse_document(YAML.encode(), as_json=False)
    (fault,) = faults_with_places([Fault(path="$.cluster.chief.machine", problem="wrong")], read)
    assert fault.document == {
        "path": "$.cluster.chief.machine",
        "problem": "wrong",
        "line": 8,
        "column": 14,
        "length": 2,
        "text": "    machine: n1",
        "text_column": 1,
    }


def test_a_fault_is_rendered_with_its_line_and_a_mark_below() -> None:
    read = parse_document(YAML.encode(), as_json=False)
    fault = Fault(
        path="$.cluster.chief.machine",
        problem="not an allowed value",
        value="n1",
        among=("n2", "n3"),
        repair="did you mean 'n2'?",
    )
    (fault,) = faults_with_places([fault], read)
    assert lines_of_fault(fault, "r.yaml") == (
        "r.yaml:8:14: $.cluster.chief.machine: not an allowed value",
        "  8 |     machine: n1",
        "    |              ^^",
        "  found 'n1'",
        "  did you mean 'n2'?",
        "  allowed: n2, n3",
    )


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        (TextPlace(line=1, column=4, text="日本 x"), ("日本 x", "     ^")),
        (TextPlace(line=1, column=1, length=2, text="日本"), ("日本", "^^^^")),
        (TextPlace(line=1, column=50, text="abc", text_column=48), ("…abc", "   ^")),
    ],
)
def test_the_mark_is_below_the_place_on_a_terminal(place: TextPlace, lines: tuple[str, str]) -> None:
    assert place.excerpt == lines


def test_a_secret_is_not_quoted_on_any_of_its_lines() -> None:
    text = b"env:\n  KEY: |\n    one\n    two\n  A: {TOKEN: abc, N: 1}\n"
    read = parse_document(text, as_json=False)
    faults = [
        Fault(path="$.env.KEY", problem="a secret", is_secret=True),
        Fault(path="$.env.A.TOKEN", problem="a secret", is_secret=True),
        Fault(path="$.env.A.N", problem="wrong"),
        Fault(path="$.env", problem="wrong"),
    ]
    texts = [fault.place.text for fault in faults_with_places(faults, read) if fault.place]
    assert texts == [None, None, None, "env:"]
    assert "  5 | (this line is not shown: it may hold a secret)" in lines_of_fault(
        faults_with_places(faults, read)[2], "f"
    )


def test_a_path_through_a_key_as_long_as_the_text_is_marked_at_the_key_above() -> None:
    key = "a.b[" * 10_000
    read = parse_document(json.dumps({"env": {key: {"c": 1}}}).encode(), as_json=True)
    assert marked(read, json_path(("env", key, "c"))) == (1, '"env"')


def test_the_repair_of_a_placeholder_that_breaks_yaml_is_to_quote_it() -> None:
    (fault,) = parse_document(b"env: {A: x/${project}/y}", as_json=False).faults
    assert fault.repair == "between brackets, put a value with ${\u2026} in quotes"
