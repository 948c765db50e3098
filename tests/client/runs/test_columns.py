"""The columns of metrics and arguments in which listed runs differ, and lists in the order of any."""

from typing import Any

import pytest

from tests.client.runs.rows import row
from trainmaster.client.runs.columns import COLUMNS_MAX, Order, differing_columns, parse_order
from trainmaster.orchestrator.core.runs.index import IndexRow


def rows(*values: dict[str, Any]) -> list[IndexRow]:
    return [row(number, **each) for number, each in enumerate(values)]


def test_only_what_differs_and_at_least_two_runs_have_is_a_column() -> None:
    found = rows(
        {"args": {"--lr": "0.1", "--epochs": "3"}, "metrics": {"accuracy": 0.9, "loss": 0.5, "rare": 1.0}},
        {"args": {"--lr": "0.2", "--epochs": "3"}, "metrics": {"accuracy": 0.8, "loss": 0.5}},
    )
    columns = differing_columns(found)
    assert [(each.name, each.is_metric, each.best) for each in columns] == [
        ("accuracy", True, 0.9),
        ("--lr", False, None),
    ]
    assert [(each.text(found[1]), each.is_best(found[1])) for each in columns] == [
        ("0.8", False),
        ("0.2", False),
    ]


@pytest.mark.parametrize(
    ("name", "order", "best"),
    [("val_loss", None, 0.1), ("f1", None, 0.2), ("score_x", None, None), ("score_x", "-score_x", 0.2)],
)
def test_the_best_value_is_by_the_name_of_the_metric_else_by_the_order(
    name: str, order: str | None, best: float | None
) -> None:
    found = rows({"metrics": {name: 0.1}}, {"metrics": {name: 0.2}})
    (column,) = differing_columns(found, parse_order(order or ""))
    assert column.best == best


def test_many_columns_are_cut_but_not_the_one_that_the_list_is_sorted_by() -> None:
    names = [f"m{number}" for number in range(20)]
    found = rows(*({"metrics": {name: float(place) for name in names}} for place in range(3)))
    columns = [each.name for each in differing_columns(found, Order(name="m17"))]
    assert (len(columns), columns[0]) == (COLUMNS_MAX, "m17")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("lr", [1, 0, 2, 3]),
        ("-lr", [0, 1, 2, 3]),
        ("--lr", [1, 0, 2, 3]),
        ("---lr", [0, 1, 2, 3]),
        ("-recorded", [3, 2, 1, 0]),
    ],
)
def test_numbers_come_before_texts_and_runs_without_a_value_last(text: str, numbers: list[int]) -> None:
    args = [{"--lr": "1e-1"}, {"--lr": "0.01"}, {"--lr": "nan"}, {}]
    order = parse_order(text)
    assert order is not None
    found = order.sort(rows(*({"args": each} for each in args)))
    assert [int(each.run_id.removeprefix("run-")) for each in found] == numbers


@pytest.mark.parametrize("text", ["-", "x" * 200])
def test_what_is_no_name_is_refused_with_the_fields(text: str) -> None:
    with pytest.raises(ValueError, match="expected recorded, duration, cost"):
        parse_order(text)
