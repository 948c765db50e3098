"""A rule that waits for something of which there is no sign is warned of, with what is near it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.client.rule_documents import example
from tests.client.runs.rows import row, write_row
from tests.client.served import PROJECT, Served, run_record
from tests.core.retraining_cases import IMAGE, fresh, rule
from trainmaster.cli.rules.inert import inert_notes
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.shown.rule_lines import idle_text, next_text
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.state import Fired, RuleStanding, RuleStatus


def notes(served: Served, *when: dict[str, Any], others: tuple[Any, ...] = ()) -> list[str]:
    one = rule(*when, request={"image": f"{IMAGE}@sha256:{'0' * 64}"})
    served.write("ledger", "rules/book.json", mapping_at(encoded(Book(rules=(one, *others)))))
    return list(inert_notes(served.clients, {one.dropped_name}))


def data(objects: str) -> dict[str, Any]:
    return {"new_data": {"objects": f"gs://{objects}"}}


def test_a_pattern_that_no_object_begins_like_is_warned_of_with_the_nearest(served: Served) -> None:
    for name in ("orders/2026-03-01/a.csv", "labels/1.json", "top.csv"):
        served.write("data", name, {})
    bucket = f"{PROJECT}-data"
    assert notes(served, data(f"{bucket}/orders/**"), data(f"{bucket}/**"), data(f"{bucket}/*.csv")) == []
    assert notes(served, data(f"{bucket}/order/**")) == [
        f"watch watches gs://{bucket}/order/**, and no object's name begins with 'order/' yet. Did you mean 'orders/'?"
    ]
    assert notes(served, data(f"{bucket}/orders/2025-*")) == [
        (
            f"watch watches gs://{bucket}/orders/2025-*, and no object's name begins with 'orders/2025-' yet. "
            "Did you mean 'orders/2026-03-01/'?"
        )
    ]
    assert notes(served, {"all": [data("nowhere-at-all/**"), {"manual": {}}]}) == [
        "watch watches gs://nowhere-at-all, which does not exist. Create the bucket, or correct `objects`."
    ]


def upstream(model_name: str) -> dict[str, Any]:
    return {"upstream": {"model_name": model_name, "event": "succeeded"}}


def test_a_model_that_nothing_trains_is_warned_of_with_the_nearest(served: Served) -> None:
    write_row(served, row(1, model_name="churn"))
    served.write("ledger", "champions/prices.json", example("champion.v1.promoted"))
    assert notes(served, upstream("churn"), upstream("prices")) == []
    assert notes(served, upstream("chrun")) == [
        (
            "watch waits for upstream chrun succeeded, and there is no run and no champion of chrun yet. "
            "Did you mean 'churn'?"
        )
    ]
    trained = rule({"manual": {}}, name="rules/other.yaml", request={"model_name": "chrun"})
    assert notes(served, upstream("chrun"), others=(trained,)) == [], "another rule trains it"


def test_an_image_or_an_alert_beside_those_that_fired_rules_is_warned_of(served: Served) -> None:
    pushed = {"new_image": {"repository": IMAGE, "tag": "lastest"}}
    alert = {"alert": {"policy": "Drift of casava"}}
    assert notes(served, pushed, alert) == [], "nothing is known about either"
    values = {
        "image.uri": f"{IMAGE}@sha256:{'0' * 64}",
        "image.tag": "latest",
        "alert.policy": "Drift of cassava",
    }
    record = run_record()
    record["source"] = {**record["source"], "kind": "rule", "firing_values": values}
    served.write("ledger", f"runs/{record['run_id']}.json", record)
    write_row(served, replace(row(1, source="rule"), run_id=record["run_id"]))
    assert notes(served, pushed, alert) == [
        (
            f"watch waits for new_image {IMAGE}:lastest, but rules were fired by others. "
            f"Did you mean '{IMAGE}:latest'?"
        ),
        (
            "watch waits for alert Drift of casava, but rules were fired by others. "
            "Did you mean 'Drift of cassava'?"
        ),
    ]
    pushed["new_image"]["tag"], alert["alert"]["policy"] = "l*", "Drift*"
    assert notes(served, pushed, alert) == []


NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
WEEKLY, DAILY, YEARLY = ({"schedule": {"cron": cron}} for cron in ("0 3 * * 1", "0 3 * * *", "0 3 1 1 *"))


@pytest.mark.parametrize(
    ("when", "days", "fired", "text"),
    [
        (upstream("features"), 29, False, ""),
        (upstream("features"), 30, False, "never fired since 2026-02-02"),
        (upstream("features"), 45, True, "not fired for 45 days"),
        (WEEKLY, 20, True, ""),
        (WEEKLY, 21, True, "not fired for 21 days"),
        (DAILY, 6, True, ""),
        (DAILY, 7, True, "not fired for 7 days"),
        (YEARLY, 400, True, ""),
        ({"all": [WEEKLY, upstream("features")]}, 29, False, ""),
        ({"manual": {}}, 400, True, ""),
    ],
)
def test_a_rule_that_has_not_fired_for_long_says_so(
    when: dict[str, Any], days: int, fired: bool, text: str
) -> None:
    one, since = rule(when), NOW - timedelta(days=days)
    last = Fired(number=1, run_id="watch-1", condition=ConditionKind.MANUAL, at=since)
    status = RuleStatus(
        dropped_name=one.dropped_name,
        generation=1,
        state=RuleStanding.ACCEPTED,
        updated_at=since,
        last_firing=last if fired else None,
    )
    found = FoundRule(
        dropped_name=one.dropped_name, rule_id=one.rule_id, rule=one, status=status, state=fresh(one, since)
    )
    assert idle_text(found, NOW) == text
    assert next_text(found, NOW).endswith(text)
    assert idle_text(FoundRule(**{**vars(found), "has_file": False}), NOW) == ""
