"""Faults of a report, read back."""

from trainmaster.client.shown.run_lines import reported_faults


def fault(path: str, line: int | None = None) -> dict[str, object]:
    place = (
        {} if line is None else {"line": line, "column": 3, "length": 4, "text": "  gpus", "text_column": 1}
    )
    return {"path": path, "problem": f"wrong {path}", **place}


def test_faults_have_the_order_of_the_file_and_those_without_a_place_come_first() -> None:
    found = reported_faults([fault("$.a", 22), fault("$.b", 4), fault("$.c"), fault("$.d", 22)])
    assert [each.path for each in found] == ["$.c", "$.b", "$.a", "$.d"]


def test_of_an_entry_that_cannot_be_read_the_problem_is_left() -> None:
    odd = {"problem": "too large", "line": "four"}
    found = reported_faults(["broken", odd, fault("$.b", 4)])
    assert [each.problem for each in found] == ["broken", "too large", "wrong $.b"]
    assert [each.path for each in found[:2]] == ["$", "$"]
