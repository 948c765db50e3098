"""Counters count lines by their fields, queries name what exists, and the runbook has every alert.

tests/contract/test_log_events.py proves that the flows write those fields.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.plan import NOTIFY, PROJECT, TERRAFORM_BINARY, plan
from trainmaster.deploy.names import METRICS
from trainmaster.orchestrator.log_events import LogEvent
from trainstack.logging.filters import parse_filter

pytestmark = pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")

ROOT = Path(__file__).resolve().parents[2]

COUNTED = {
    "ends": LogEvent.JOB_ENDED,
    "unreconciled": LogEvent.RUN_NOT_RECONCILED,
    "behind": LogEvent.RECONCILE_BEHIND,
    "quarantined": LogEvent.QUARANTINED,
    "waits": LogEvent.RUN_WAITS,
    "not_started": LogEvent.JOB_NOT_STARTED,
    "refused": LogEvent.DEPLOYMENT_REFUSED,
}


def entry(
    *, event: LogEvent | None = None, severity: str = "INFO", service: str = "on-tick"
) -> Mapping[str, Any]:
    """An entry as Cloud Run makes it of a printed line. Its text must not matter to any counter."""
    name = {} if event is None else {"event": str(event)}
    return {
        "logName": f"projects/{PROJECT}/logs/run.googleapis.com%2Fstdout",
        "resource": {"type": "cloud_run_revision", "labels": {"service_name": service}},
        "severity": severity,
        "jsonPayload": {"message": "the run succeeded", "entry_point": "on_tick", **name},
    }


def counts(metric: str, line: Mapping[str, Any]) -> bool:
    text = f"{plan()['printed']} AND {plan()['metrics'][metric]['filter']}"
    return parse_filter(text).passes(line)


@pytest.mark.parametrize("severity", ["DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL"])
@pytest.mark.parametrize("metric", COUNTED)
def test_a_counter_counts_the_lines_of_one_name_in_every_severity(metric: str, severity: str) -> None:
    counted = {event for event in LogEvent if counts(metric, entry(event=event, severity=severity))}
    assert counted == {COUNTED[metric]}


@pytest.mark.parametrize("metric", COUNTED)
def test_a_counter_counts_no_unnamed_line_and_no_other_service(metric: str) -> None:
    assert not counts(metric, entry())
    assert not counts(metric, entry(event=COUNTED[metric], service="another-service"))


def test_every_name_in_a_filter_is_in_the_table_of_the_code_and_every_one_there_is_counted() -> None:
    made = plan()
    filters = [each["filter"] for each in (*made["metrics"].values(), *made["notices"].values())]
    assert sorted(re.findall(r'event="(\w+)"', " ".join(filters))) == sorted(LogEvent)


def test_an_email_receivers_alert_matches_its_own_lines_alone() -> None:
    ((name, receiver),) = plan()["notices"].items()
    assert (name, receiver["to"]) == ("mail", NOTIFY["mail"]["to"])
    found = parse_filter(f"{plan()['printed']} AND {receiver['filter']}")
    line: dict[str, Any] = {**entry(event=LogEvent.NOTICE_EMAIL, service="on-notice-out")}
    for named, passes in ((name, True), ("another", False), (None, False)):
        payload = {**line["jsonPayload"], **({"receiver": named} if named else {})}
        assert found.passes({**line, "jsonPayload": payload}) is passes


def test_each_secret_is_granted_once_to_the_one_function_that_mounts_it() -> None:
    (grant,) = plan()["grants"]["secret"].values()
    assert (grant["account"], grant["name"]) == ("on-notice-out", "hmac")
    mounted = {name: each["secrets"] for name, each in plan()["functions"].items() if each["secrets"]}
    assert mounted == {"on-notice-out": ["hmac"]}


def test_severities_distinguish_refusals_from_mistakes() -> None:
    assert counts("refusals", entry(severity="ERROR"))
    assert not counts("refusals", entry(severity="CRITICAL"))
    assert counts("mistakes", entry(severity="CRITICAL"))


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


def test_the_runbook_has_a_section_for_every_alert() -> None:
    headings = re.findall(r"(?m)^#+ (.*)$", (ROOT / "docs/how-to/runbook.md").read_text())
    assert {alert["title"] for alert in plan()["alerts"].values()} <= set(headings)


def test_the_dashboard_has_no_zero_which_the_service_would_leave_out_of_its_answer() -> None:
    assert all(
        tile.get(side) != 0
        for tile in plan()["dashboard"]["mosaicLayout"]["tiles"]
        for side in ("xPos", "yPos")
    )
