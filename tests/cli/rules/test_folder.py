"""`rules apply --prune DIR`: every change is shown before any is made, and whatever is wrong changes nothing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.rule_documents import write_rules
from tests.client.served import Served, served_context
from tests.command import Done

RULE = {"when": [{"manual": {}}], "request": {"model_name": "m", "image": "us-central1-docker.pkg.dev/trainmaster-local/t/i:1", "cluster": {"chief": {"machine": "n1-standard-4"}}}}  # fmt: skip


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with served_context(tmp_path, publishes=True) as served:
        write_rules(served)
        (tmp_path / "rules").mkdir()
        yield served


def files_of(served: Served) -> dict[str, int]:
    inbox = served.clients.context.inbox_bucket
    return {blob.name: int(blob.generation) for blob in served.clients.storage.list_blobs(inbox)}


def applied(served: Served, *words: str) -> tuple[Done, bool]:
    """How the command ended, and whether it changed a file."""
    before = files_of(served)
    done = served.trainmaster("rules", "apply", "--prune", *words)
    return done, files_of(served) != before


def write_rule(served: Served, name: str, **changes: object) -> None:
    (served.folder / "rules" / name).write_text(json.dumps({**RULE, **changes}))


@pytest.mark.parametrize("words", [(), ("--plan",)])
def test_every_change_is_shown_and_none_is_made_before_there_is_a_yes(
    served: Served, words: tuple[str, ...]
) -> None:
    write_rule(served, "weekly.yaml")
    write_rule(served, "fresh.json")
    (served.folder / "rules/README.md").write_text("not a rule")
    done, has_changed = applied(served, "rules", *words)
    assert (done.status, has_changed) == (0 if words else 2, False), done.err
    shown = [line for line in done.err.splitlines() if line.startswith(("add ", "change ", "remove "))]
    assert shown == [
        "add rules/fresh.json, from rules/fresh.json",
        "change rules/weekly.yaml, from rules/weekly.yaml; a pause ends unless the file has `enabled: false`",
        "remove rules/bad.yaml",
        "remove rules/cassava/new-data.yaml",
        "remove rules/new.yaml",
    ]


def test_the_faults_of_all_files_are_shown_and_nothing_is_changed(served: Served) -> None:
    write_rule(served, "sound.yaml")
    write_rule(served, "one.yaml", when=[])
    write_rule(served, "two.yaml", cooldown_s="soon")
    done, has_changed = applied(served, "rules", "--yes")
    assert (done.status, has_changed) == (2, False)
    assert "rules/one.yaml:1:" in done.err
    assert "rules/two.yaml:1:" in done.err
    assert "Nothing was changed." in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rules", "--yes"), "rules has no rule, so all would be removed. If you mean it: --allow-empty"),
        (("nowhere", "--yes"), "--prune takes a folder, and nowhere is none: No such file or directory."),
        (("rules", "rules", "--yes"), "--prune takes one folder with all rules"),
        (("rules", "--policy", "p.yaml"), "--prune takes one folder with all rules, and the deployed policy"),
        (("rules", "--allow-empty"), "--prune needs --yes where no one can be asked."),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    served: Served, words: tuple[str, ...], said: str
) -> None:
    done, has_changed = applied(served, *words)
    assert (done.status, done.out, has_changed) == (2, "", False)
    assert said in done.err


def test_its_options_are_refused_without_it(served: Served) -> None:
    done = served.trainmaster("rules", "apply", "rules", "--yes")
    assert (done.status, done.out) == (2, "")
    assert "--plan, --allow-empty and --yes are for --prune." in done.err


def test_an_empty_folder_removes_every_rule_on_request(served: Served) -> None:
    done, _ = applied(served, "rules", "--yes", "--allow-empty")
    assert done.status == 0, done.err
    assert files_of(served) == {}
