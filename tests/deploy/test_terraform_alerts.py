"""Alerts and counters speak of what the functions really print, and the runbook of every alert."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.plan import PROJECT, TERRAFORM_BINARY, plan
from trainmaster.deploy.names import METRICS
from trainmaster.local.logging.filters import parse_filter
from trainmaster.orchestrator.core.errors import RecordDamaged
from trainmaster.orchestrator.core.runs.states import ENDS, RunState

pytestmark = pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")

ROOT = Path(__file__).resolve().parents[2]
FLOW = "\n".join(path.read_text() for path in (ROOT / "trainmaster/orchestrator/flows").rglob("*.py"))

# A line that each counter counts, its severity, and how the flow's source prints it.
PRINTED = {
    "ends": ("the run succeeded; its model is gs://b/m", "INFO", r'message=f"the run {ended\.state}{where}"'),
    "unswept": ("not swept: Vertex AI did not answer", "WARNING", r'message=f"not swept: {error}"'),
    "behind": (
        "no time for 3 of 40 active runs: the next sweep goes on with them",
        "WARNING",
        r'f"no time for {left} of {len\(markers\)} active runs',
    ),
    "waits": ("quota exceeded; the run waits", "NOTICE", r'message=f".*the run waits.*severity="NOTICE"'),
}


def entry(message: str, *, severity: str = "INFO", service: str = "on-tick") -> Mapping[str, Any]:
    """An entry as Cloud Run makes it of a printed line."""
    return {
        "logName": f"projects/{PROJECT}/logs/run.googleapis.com%2Fstdout",
        "resource": {"type": "cloud_run_revision", "labels": {"service_name": service}},
        "severity": severity,
        "jsonPayload": {"message": message, "entry_point": "on_tick"},
    }


def counts(metric: str, line: Mapping[str, Any]) -> bool:
    text = f"{plan()['printed']} AND {plan()['metrics'][metric]['filter']}"
    return parse_filter(text).passes(line)


@pytest.mark.parametrize("metric", PRINTED)
def test_a_counter_counts_the_line_that_the_flow_prints(metric: str) -> None:
    message, severity, source = PRINTED[metric]
    assert re.search(source, FLOW)
    assert counts(metric, entry(message, severity=severity))


@pytest.mark.parametrize("metric", PRINTED)
def test_a_counter_counts_no_other_line_and_no_other_service(metric: str) -> None:
    message, severity, _ = PRINTED[metric]
    assert not counts(metric, entry("submitted: projects/p/locations/r/customJobs/1"))
    assert not counts(metric, entry(message, severity=severity, service="somebody-elses"))
    for other in set(PRINTED) - {metric}:
        assert not counts(metric, entry(PRINTED[other][0], severity=PRINTED[other][1]))


def test_every_end_but_a_refusal_is_counted() -> None:
    for state in ENDS:
        assert counts("ends", entry(f"the run {state}")) == (state is not RunState.REJECTED)


def test_a_job_that_found_no_capacity_counts_with_the_runs_that_wait() -> None:
    assert re.search(r'message = f"{job\.name} found no capacity; next: .*\n.*severity="NOTICE"', FLOW)
    line = "projects/p/locations/r/customJobs/1 found no capacity; next: us-east1"
    assert counts("waits", entry(line, severity="NOTICE"))


def test_a_damaged_record_is_a_run_that_sweeps_cannot_look_at() -> None:
    damaged = RecordDamaged("gs://p-ledger/runs/m-20260101t000000-0a.json", "no JSON")
    assert counts("unswept", entry(f"{damaged}. Restore an earlier generation", severity="ERROR"))


def test_severities_tell_refusals_from_mistakes() -> None:
    assert counts("refusals", entry("x", severity="ERROR"))
    assert not counts("refusals", entry("x", severity="CRITICAL"))
    assert counts("mistakes", entry("x", severity="CRITICAL"))


def queries() -> list[str]:
    """Of every alert and of every tile."""
    tiles = plan()["dashboard"]["mosaicLayout"]["tiles"]
    shown = [data for tile in tiles for data in tile["widget"]["xyChart"]["dataSets"]]
    return [
        *(alert["query"] for alert in plan()["alerts"].values()),
        *(data["timeSeriesQuery"]["prometheusQuery"] for data in shown),
    ]


def test_every_counter_in_a_query_exists_and_every_one_is_used() -> None:
    named = {name for query in queries() for name in re.findall(r"user_trainmaster_(\w+)", query)}
    assert named == set(plan()["metrics"])


def test_the_checks_before_a_deployment_know_every_counter() -> None:
    assert set(METRICS) == set(plan()["metrics"])


def test_labels_in_queries_are_labels_of_the_counter() -> None:
    for query in queries():
        for name, labels in re.findall(r"user_trainmaster_(\w+)(?:\{([^}]*)\})?", query):
            named = set(re.findall(r"(\w+)=", labels))
            assert "monitored_resource" in named, query
            assert named - {"monitored_resource"} <= set(plan()["metrics"][name]["labels"])


def test_queries_name_functions_subscriptions_and_sinks_that_exist() -> None:
    text = " ".join(alert["query"] for alert in plan()["alerts"].values())
    for name in [*plan()["subscriptions"], *plan()["sinks"], *plan()["functions"]]:
        assert name in text


def test_brackets_in_queries_close() -> None:
    for alert in plan()["alerts"].values():
        bare = re.sub(r'"[^"]*"', "", alert["query"])
        for opening, closing in ("()", "{}", "[]"):
            assert bare.count(opening) == bare.count(closing)


def test_the_runbook_has_a_section_for_every_alert() -> None:
    headings = re.findall(r"(?m)^#+ (.*)$", (ROOT / "docs/how-to/runbook.md").read_text())
    assert {alert["title"] for alert in plan()["alerts"].values()} <= set(headings)


def test_the_dashboards_tiles_do_not_overlap() -> None:
    layout = plan()["dashboard"]["mosaicLayout"]
    places = [(tile.get("xPos", 0), tile.get("yPos", 0), tile) for tile in layout["tiles"]]
    taken = [
        (x, y)
        for left, top, tile in places
        for x in range(left, left + tile["width"])
        for y in range(top, top + tile["height"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < layout["columns"]


def test_the_dashboard_has_no_zero_which_the_service_would_leave_out_of_its_answer() -> None:
    assert all(
        tile.get(side) != 0
        for tile in plan()["dashboard"]["mosaicLayout"]["tiles"]
        for side in ("xPos", "yPos")
    )
