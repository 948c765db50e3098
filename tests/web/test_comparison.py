"""Runs side by side, from their records alone."""

from dataclasses import replace
from typing import Any

from tests.cli.runs.records import rejected
from tests.client.served import run_record
from trainmaster.client.watch.curves import Chart, Series
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.web.pages.compare import charts_of_runs, run_names
from trainmaster.web.pages.comparison import (
    ROWS_MAX,
    VALUE_MAX_CHARS,
    Compared,
    compare,
)


def record(example: str = "succeeded", **request: Any) -> RunRecord:
    """A record of the examples, with these keys of its request changed."""
    document = run_record(example)
    if request:
        document["request"]["document"] |= request
    return decoded(RunRecord, document)


def rows(*records: RunRecord) -> dict[str, Compared]:
    """Every row by section and name: `Request/args --epochs`."""
    return {f"{section.title}/{row.name}": row for section in compare(records) for row in section.rows}


def test_arguments_are_compared_by_their_names() -> None:
    found = rows(
        record(args=["--lr=0.1", "--epochs", "2", "--mixed", "--steps=5"]),
        record(args=["--epochs", "2", "--lr=0.01", "train", "--steps=5"]),
    )
    values = {
        name.removeprefix("Request/args "): row.values for name, row in found.items() if "/args " in name
    }
    assert values == {
        "--lr": ("0.1", "0.01"),
        "--epochs": ("2", "2"),
        "--mixed": ("set", ""),
        "--steps": ("5", "5"),
        "[3]": ("", "train"),
    }
    assert [name for name, row in found.items() if row.differs] == [
        "Request/args --lr",
        "Request/args --mixed",
        "Request/args [3]",
    ]


def test_machines_labels_metrics_durations_and_costs_stand_side_by_side() -> None:
    found = rows(record("tuned"), record("tuned", labels={"team": "vision"}))
    assert found["Request/cluster.workers.count"].values == ("1", "1")
    assert found["Labels/team"].values == ("agronomy", "vision")
    assert found["Metrics/accuracy"].values == ("0.75", "0.75")
    assert found["Tuning/best learning_rate"].values == ("0.01", "0.01")
    assert found["Durations/running"].values == ("10m", "10m")


def test_a_rejected_run_has_only_its_state_and_problem() -> None:
    found = rows(record(), rejected().record)
    assert found["Run/state"].values == ("succeeded", "rejected")
    assert found["Run/problem"].values[1]
    assert found["Request/model_name"].values[1] == ""


def test_metrics_that_differ_little_are_not_shown_as_equal() -> None:
    document = run_record("succeeded")
    document["model"]["metrics"] = {"accuracy": 0.812345}
    other = run_record("succeeded")
    other["model"]["metrics"] = {"accuracy": 0.812346}
    found = rows(decoded(RunRecord, document), decoded(RunRecord, other))
    assert found["Metrics/accuracy"].differs


def test_sections_and_values_are_bounded() -> None:
    labels = {f"label-{number}": "x" * 1000 for number in range(ROWS_MAX + 7)}
    (section,) = [each for each in compare([record(labels=labels)] * 2) if each.title == "Labels"]
    assert (len(section.rows), section.left_out) == (ROWS_MAX, 7)
    assert len(section.rows[0].values[0]) == VALUE_MAX_CHARS


def test_the_curves_of_runs_are_drawn_over_each_other_under_short_names_with_what_differs() -> None:
    def chart(name: str, *series: str) -> Chart:
        return Chart(
            name=name, x="step", series=tuple(Series(name=each, points=((1, 2.0),)) for each in series)
        )

    made = [record(args=[f"--lr={lr}", "--epochs=3"]) for lr in (0.1, 0.2)]
    ids = ("cassava-20260301t120000-ed76f2bda9", "cassava-20260301t120000-00beefbda9")
    records = [replace(each, run_id=run_id) for each, run_id in zip(made, ids, strict=True)]
    names = run_names(records)
    assert names == ["ed76f2 lr=0.1", "00beef lr=0.2"]
    assert run_names(made[:1] * 2) == [made[0].run_id] * 2
    found = charts_of_runs({
        names[0]: [chart("loss", "workerpool0-0", "workerpool1-0"), chart("accuracy", "workerpool0-0")],
        names[1]: [chart("loss", "workerpool0-0")],
    })  # fmt: skip
    assert [(each.name, [one.name for one in each.series]) for each in found] == [
        ("loss", names),
        ("accuracy", names[:1]),
    ]
