"""Listings of rules and champions end at a limit, and say so."""

import json
from collections.abc import Iterator

import pytest

from tests.client.served import ROOT, Served, served_context
from trainmaster.client.rules import champions, listing

VALID = ROOT / "schemas/examples/valid"


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_context(tmp_path_factory.mktemp("served")) as served:
        yield served


def test_champions_beyond_the_limit_are_reported_not_listed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(champions, "CHAMPIONS_MAX", 2)
    document = json.loads((VALID / "champion.v1.promoted.json").read_text())
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
    book = json.loads((VALID / "rule_book.v1.one_rule.json").read_text())
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
