"""Listings of rules and champions end at a limit, and say so."""

import json
from datetime import UTC, datetime

import pytest

from tests.client.rule_documents import example, write_rules
from tests.client.served import Served
from trainmaster.client.rules import champions, listing
from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject, batch_object, encoded_batch


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


def test_rules_behind_the_listed_objects_keep_their_files(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known about them: `zebra` must not be shown as deleted because other objects fill the listing."""
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


def test_a_rule_whose_state_is_damaged_is_listed_without_it(served: Served) -> None:
    write_rules(served)
    before = [rule.rule_id for rule in listing.list_rules(served.clients)]
    bucket = served.clients.storage.bucket(served.clients.context.ledger_bucket)
    for rule_id in before:
        bucket.blob(f"rule-state/{rule_id}.json").upload_from_string("no JSON")
    assert [rule.rule_id for rule in listing.list_rules(served.clients)] == before
    assert listing.read_state(served.clients, str(before[0])) is None
