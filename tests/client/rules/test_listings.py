"""Listings of rules and champions end at a limit, and say so."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.client.rule_documents import example, write_rules
from tests.client.served import Served
from trainmaster.client.rules import champions, listing
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.shown.rule_lines import next_text
from trainmaster.orchestrator.core.documents.codec import decoded, encoded_time
from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject, batch_object, encoded_batch
from trainmaster.orchestrator.core.retraining.book import parse_book
from trainmaster.orchestrator.core.retraining.state import RuleState, WaitingFolder


def test_champions_beyond_the_limit_are_reported_not_listed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(champions, "CHAMPIONS_MAX", 2)
    document = example("champion.v1.promoted")
    for name in ("a", "b"):
        served.write("ledger", f"champions/{name}.json", document | {"model_name": name})
    assert champions.champion_names(served.clients) == (["a", "b"], [])
    served.write("ledger", "champions/c.json", document)
    found, problems = champions.list_champions(served.clients)
    assert [each.champion.model_name for each in found] == ["a", "b"]
    assert problems == ["There are more than 2 champions: only the first by name are listed."]


@pytest.mark.parametrize("group", ["champions", "rules"])
def test_the_context_may_be_named_before_the_verb_or_behind_it(served: Served, group: str) -> None:
    here = f"local:{served.folder / '.trainmaster'}"
    for words in ((group, "--context", here, "ls"), (group, "ls", "--context", here)):
        assert served.trainmaster(*words).status == 0
    refused = served.trainmaster(group, "--context", "local:/nowhere", "ls")
    assert (refused.status, "/nowhere" in refused.err) == (4, True)
    assert served.trainmaster(group, "--context", "local:/nowhere", "ls", "--context", here).status == 0


def test_rules_behind_the_listed_objects_keep_their_files(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known about them: `zebra` may not be shown as deleted because other objects fill the listing."""
    book = example("rule_book.v1.one_rule")
    names = ("rules/b.yaml", "rules/zebra.yaml")
    book["rules"] = [{**book["rules"][0], "rule_id": name[6:-5], "dropped_name": name} for name in names]
    served.write("ledger", "rules/book.json", book)
    for name in ("rules/a.txt", "rules/c.txt", "rules/d.txt"):
        served.write("inbox", name, {})
    complete = {rule.dropped_name: rule.has_file for rule in listing.list_rules(served.clients)}
    assert complete == {"rules/b.yaml": False, "rules/zebra.yaml": False}
    monkeypatch.setattr(listing, "FILES_MAX", 2)
    cut = {rule.dropped_name: rule.has_file for rule in listing.list_rules(served.clients)}
    assert cut == {"rules/b.yaml": False, "rules/zebra.yaml": True}


def test_objects_that_no_tick_has_counted_yet_are_in_the_counts(served: Served) -> None:
    write_rules(served)
    bucket = served.clients.storage.bucket(served.clients.context.ledger_bucket)
    created = datetime(2026, 3, 4, 12, tzinfo=UTC)
    names = ("cassava/1.jpg", "cassava/2.jpg", "elsewhere/3.jpg")
    arrived = [
        ArrivedObject(bucket="my-project-data", name=name, generation=7, size_bytes=10, created_at=created)
        for name in names
    ]
    for number in (1, 2):  # the second repeats the events
        batch = batch_object(created, "ab", number)
        bucket.blob(batch).upload_from_string(encoded_batch(arrived))
    bucket.blob("arrivals/stray").upload_from_string(b"no batch")
    listed = {rule.rule_id: rule for rule in listing.list_rules(served.clients)}
    assert list(listed["cassava.new-data"].counts()) == ["14 of 100 objects"]
    found = listing.find_rule(served.clients, "cassava.new-data")
    assert list(found.counts()) == ["14 of 100 objects"]
    assert found.state is not None
    assert found.state.waiting[0].dir_uri == "gs://my-project-data/cassava/"
    kept = json.loads(bucket.blob("rule-state/cassava.new-data.json").download_as_bytes())
    assert kept["waiting"][0]["count"] == 12  # only a tick writes


@pytest.mark.parametrize(
    ("while_running", "next_at"),
    [("skip", "2099-03-06T03:00:00.000000Z"), ("queue_one", "2099-03-05T12:10:00.000000Z")],
)
def test_the_next_time_of_a_rule_is_within_max_per_day(
    served: Served, while_running: str, next_at: str
) -> None:
    """The rule fired at 12:10, and may fire once in 24 hours: at 03:00 it may not."""
    book = example("rule_book.v1.one_rule")
    document = {
        **book["rules"][0]["document"],
        "when": [{"schedule": {"cron": "0 3 * * *"}}],
        "max_per_day": 1,
        "while_running": while_running,
    }
    weekly = {"rule_id": "weekly", "dropped_name": "rules/weekly.yaml", "document": document}
    book["rules"] = [{**book["rules"][0], **weekly}]
    served.write("ledger", "rules/book.json", book)
    at = "2099-03-04T12:10:00.000000Z"
    status = {**example("rule_status.v1.accepted"), "rule_id": "weekly", "dropped_name": "rules/weekly.yaml"}
    status["last_firing"] = {**status["last_firing"], "at": at}
    served.write("ledger", "status/rules/weekly.yaml.json", status)
    state = {**example("rule_state.v1.firing"), "rule_id": "weekly", "fired_at": [at], "fired_last_at": at}
    served.write("ledger", "rule-state/weekly.json", state)
    served.write("inbox", "rules/weekly.yaml", {})
    now = datetime(2099, 3, 4, 12, 30, tzinfo=UTC)
    (listed,) = [each for each in listing.list_rules(served.clients) if each.rule_id == "weekly"]
    for rule in (listed, listing.find_rule(served.clients, "weekly")):
        assert rule.document(now)["next_at"] == next_at
        assert [encoded_time(each.due_at) for each in rule.awaited(now) if each.due_at] == [next_at]


def test_data_that_is_due_fires_at_the_next_full_minute_and_is_enough() -> None:
    """Ticks fire rules: a moment that has passed would never come."""
    document = {**example("rule_book.v1.one_rule")["rules"][0]}
    document["document"] = {
        **document["document"],
        "when": [{"new_data": {"objects": "gs://d/**", "min_objects": 3, "quiet_s": 5}}],
    }
    (rule,) = parse_book({**example("rule_book.v1.one_rule"), "rules": [document]}).rules
    now = datetime(2026, 3, 4, 3, 52, 51, tzinfo=UTC)
    first, newest = now - timedelta(seconds=50), now - timedelta(seconds=40)
    count = WaitingFolder(dir_uri="gs://d/", takers=(0,), count=4, first_at=first, newest_at=newest)
    state = decoded(RuleState, {**example("rule_state.v1.firing"), "fired_at": [], "fired_last_at": None})
    found = FoundRule(
        dropped_name=rule.dropped_name,
        rule_id=rule.rule_id,
        rule=rule,
        state=replace(state, watched=("gs://d/**",), waiting=(count,)),
    )
    assert found.next_at(now) == datetime(2026, 3, 4, 3, 53, tzinfo=UTC)
    assert next_text(found, now) == "2026-03-04 03:53 UTC, 4 objects, enough"
