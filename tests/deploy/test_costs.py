"""The table of idle costs in docs/reference/deployment.md follows from the configuration."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import yaml
from cronsim import CronSim

from tests.contract.data_stream import MeteredObjects
from tests.contract.world import World
from tests.deploy.hcl import TERRAFORM, block, loaded
from trainmaster.orchestrator.flows.scheduled import take_tick

ROOT = Path(__file__).resolve().parents[2]
TOPOLOGY: dict[str, Any] = yaml.safe_load((ROOT / "trainmaster/deploy/topology.yaml").read_text())
MONTH = timedelta(hours=730)
TICK_S, LOG_KIB = 1, 4
"""Assumed, and said to be so in the table."""
UNITS = {"a thousand": 1e3, "a million": 1e6}


@dataclass(frozen=True, kw_only=True)
class Row:
    """`price` is for one unit of `amount`; None where nothing is paid for."""

    amount: float
    price: float | None
    cost: float


def table() -> dict[str, Row]:
    """The rows by their items, without the last one, which is their sum."""
    text = (ROOT / "docs/reference/deployment.md").read_text().split("### An idle deployment", 1)[1]
    lines = [
        line
        for line in text.split("How reliable these numbers are", 1)[0].splitlines()
        if line.startswith("| ")
    ]
    return {cells[0]: row(cells) for cells in map(cells_of, lines[1:-1])}


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def row(cells: list[str]) -> Row:
    price = re.search(r"\[\$([\d.]+)\]\(\S+\) (.*)", cells[2])
    return Row(
        amount=float(cells[1].split()[0].replace(",", "")),
        price=float(price[1]) / UNITS.get(price[2], 1) if price else None,
        cost=float(cells[3].removeprefix("$")),
    )


def ticks() -> int:
    """Ticks in a month of all schedules that send one."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return sum(
        sum(1 for _ in takewhile(lambda at: at <= start + MONTH, CronSim(schedule["cron"], start)))
        for schedule in TOPOLOGY["schedules"].values()
        if schedule["topic"] == "ticks"
    )


def operations_of_an_idle_tick() -> Mapping[str, int]:
    """Of the flows that on_tick calls, on buckets that hold nothing."""
    world = World()
    world.objects = objects = MeteredObjects(world.clock)
    services = world.services()
    assert list(take_tick(services)) == []
    return {verb: objects.meter.of(verb) for verb in ("list", "read", "write", "delete")}


def monitoring(name: str) -> Mapping[str, Any]:
    for each in loaded(TERRAFORM / "plan")["monitoring.tf"]["locals"]:
        if name in each:
            found: Mapping[str, Any] = {key: value for key, value in each[name].items() if "__" not in key}
            return found
    raise LookupError(name)


def service_config() -> Mapping[str, Any]:
    (config,) = block("google_cloudfunctions2_function", "function")["service_config"]
    found: Mapping[str, Any] = config
    return found


def amounts() -> Mapping[str, float]:
    operations = operations_of_an_idle_tick()
    cpus = float(str(service_config()["available_cpu"]).strip('"'))
    gib = TOPOLOGY["functions"]["on-tick"]["memory_mib"] / 1024
    return {
        "schedules": len(TOPOLOGY["schedules"]),
        "calls of `on-tick`": ticks(),
        "their processor time, at 1 s each (assumed)": ticks() * TICK_S * cpus,
        "their memory, at 1 s each (assumed)": ticks() * TICK_S * gib,
        "instances kept while idle": int(service_config()["min_instance_count"]) * len(TOPOLOGY["functions"]),
        "listings of objects, class A": ticks() * (operations["list"] + operations["write"]),
        "reads of objects, class B": ticks() * operations["read"],
        # Published and delivered, each at least 1 KB: https://cloud.google.com/pubsub/pricing
        "messages of ticks, published and delivered": ticks() * 2 / 1024**2,
        "alert conditions": len(monitoring("alerts")) * len(conditions()),
        # A point a minute, of 8 bytes: https://cloud.google.com/stackdriver/pricing
        "data of log-based metrics": len(monitoring("metrics")) * MONTH / timedelta(minutes=1) * 8 / 1024**2,
        "request and scheduler logs, at 4 KiB a tick (assumed)": ticks() * LOG_KIB / 1024**2,
    }


def conditions() -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = block("google_monitoring_alert_policy", "policy")["conditions"]
    return found


@pytest.mark.slow
def test_every_amount_follows_from_the_configuration() -> None:
    rows = table()
    assert {item: rows[item].amount for item in amounts()} == {
        item: round(amount, 2 if amount < 1 else 1) for item, amount in amounts().items()
    }


def test_every_cost_is_its_amount_at_its_price() -> None:
    for item, each in table().items():
        assert each.cost == pytest.approx(each.amount * (each.price or 0), abs=0.006), item
        assert each.price is not None or each.amount == 0, item


def test_the_sum_is_the_sum() -> None:
    text = (ROOT / "docs/reference/deployment.md").read_text()
    total = sum(each.cost for each in table().values())
    assert f"| **all** | | | **${total:.2f}** | |" in text
    assert f"at most about **${total:.1f}0 a month**" in text
