"""Screens of `rules` and `champions` for people, and the rules' documents for programs."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import click
import pytest

from tests.cli.screens import assert_screen
from tests.client.rule_documents import example, write_rules
from tests.client.runs.rows import row, write_row
from tests.client.served import ROOT, Served, run_record, served_context
from tests.command import Done
from tests.core.shipped import assert_valid
from tests.fixtures import fixture_of
from trainmaster.cli.rules.screens import SPARE, rule_rows
from trainmaster.cli.table import fact_lines, table_lines
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.rules.listing import find_rule, list_rules
from trainmaster.client.shown.rule_lines import rule_facts
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.retraining.state import RuleStatus
from trainmaster.orchestrator.core.runs.states import RunState

NOW = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)


served = fixture_of(served_context, write_rules, publishes=True)


@pytest.mark.parametrize("width", [80, 120, None])
def test_the_list_of_rules(served: Served, width: int | None) -> None:
    rows = rule_rows(list_rules(served.clients), NOW, is_cut=width is not None)
    lines = [click.unstyle(line) for line in table_lines(rows, width=width, spare=SPARE)]
    assert_screen(f"rules.{width or 'pipe'}", "".join(f"{line}\n" for line in lines))
    assert width is None or max(map(len, lines)) <= width


def test_the_list_says_why_a_rule_is_in_quarantine() -> None:
    reason = "its turn failed 3 times in a row"
    status = example("rule_status.v1.accepted") | {"state": "quarantined", "reason": reason}
    assert_valid(status, "rule_status.v1")
    found = FoundRule(dropped_name="rules/a.yaml", rule_id="a", status=decoded(RuleStatus, status))
    (row,) = rule_rows([found], NOW, is_cut=False)
    assert (row["STATE"], row["NEXT"]) == ("quarantined", reason)


@pytest.mark.parametrize("rule", ["cassava.new-data", "weekly", "bad"])
def test_the_screen_of_a_rule_shows_its_state_and_why(served: Served, rule: str) -> None:
    lines = fact_lines(rule_facts(find_rule(served.clients, rule), NOW), width=80)
    shown = [click.unstyle(line) for line in lines]
    assert_screen(f"rule.{rule}", "".join(f"{line}\n" for line in shown))


def test_the_document_of_each_rule_fits_its_schema(served: Served) -> None:
    views = json.loads(served.trainmaster("rules", "ls", "-o", "json").out)
    for view in views:
        assert_valid(view, "rule_view.v1")
        if "status" in view:
            assert_valid(view["status"], "rule_status.v1")
    assert [view["rule_id"] for view in views] == ["bad", "cassava.new-data", "new", "weekly"]
    assert "next_at" in views[-1]


def test_a_champion_with_its_predecessors_and_challengers(served: Served) -> None:
    assert_screen("champion", served.trainmaster("champions", "show", "cassava-resnet50").out)


def test_a_run_that_is_still_being_registered_is_named(served: Served) -> None:
    record, name = run_record(), "cassava-resnet50"
    record["completion"]["steps_done"] = ["evaluation", "champion"]
    served.write("ledger", f"runs/{record['run_id']}.json", record)
    ended = row(1, model_name=name, state=RunState.SUCCEEDED)
    write_row(served, replace(ended, run_id=record["run_id"]))
    said = served.trainmaster("champions", "show", name).err
    assert said.startswith(f"{record['run_id']} has succeeded, and its model is still being registered: ")


@pytest.mark.parametrize(("team", "kept"), [("vision", True), (None, False)])
def test_a_run_of_another_team_or_without_a_record_is_not_named(
    served: Served, team: str | None, kept: bool
) -> None:
    run_id = f"{team or 'gone'}-20260301t120000-eb46bb303f"
    if kept:
        served.write("ledger", f"runs/{run_id}.json", run_record(run_id=run_id))
    ended = row(3 if kept else 4, model_name="cassava-resnet50", state=RunState.SUCCEEDED, team=team)
    write_row(served, replace(ended, run_id=run_id))
    done = served.trainmaster("champions", "show", "cassava-resnet50")
    assert (done.status, "being registered" in done.err) == (0, False)


def test_a_list_of_models_says_that_the_latest_run_left_none(served: Served) -> None:
    write_row(served, row(1, model_name="flowers", reason="no model was found"))
    (line,) = (text for text in served.trainmaster("models").out.splitlines() if "flowers" in text)
    assert "succeeded, no model" in line


@pytest.mark.parametrize(
    ("words", "nearest"),
    [(["rules", "show", "weekyl"], "weekly"), (["champions", "rollback", "cassava"], "cassava-resnet50")],
)
def test_an_unknown_name_suggests_the_nearest(served: Served, words: list[str], nearest: str) -> None:
    done = served.trainmaster(*words)
    assert (done.status, done.out) == (3, "")
    assert f"Did you mean {nearest!r}?" in done.err


@pytest.mark.parametrize(("name", "status"), [("rules/book.json", 3), ("champions/cassava-resnet50.json", 1)])
def test_a_damaged_document_is_reported(served: Served, name: str, status: int) -> None:
    blob = served.clients.storage.bucket(served.clients.context.ledger_bucket).blob(name)
    before = blob.download_as_bytes()
    blob.upload_from_string(b'{"rules": [1]}')
    done = served.trainmaster(name.partition("/")[0], "ls")
    blob.upload_from_string(before)
    assert (done.status, done.out) == (status, "")
    assert "damaged" in done.err


def test_the_repair_of_an_empty_file_speaks_of_a_rule(served: Served) -> None:
    (served.folder / "empty.yaml").touch()
    done = served.trainmaster("rules", "apply", "empty.yaml")
    assert done.status == 2
    assert "the document is empty" in done.err
    assert "write the conditions of the rule under `when`" in done.err
    assert "request" not in done.err


own = fixture_of(served_context, write_rules, scope="function", publishes=True)
"""A context whose rules a test changes."""


def applied(served: Served, text: str, file: str = "weekly.yaml", **answer: Any) -> Done:
    """What `rules apply` does with a file of this text, which the service has answered."""
    path = served.folder / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    answer |= {"dropped_name": f"rules/{path.name}", "rule_id": path.stem, "generation": 2**62}
    status = example("rule_status.v1.accepted") | answer
    served.write("ledger", f"status/rules/{path.name}.json", status)
    return served.trainmaster("rules", "apply", file)


def shipped(name: str) -> str:
    """The text of an example's rule."""
    return (ROOT / f"examples/rules/{name}.yaml").read_text()


@pytest.mark.parametrize(("state", "shown"), [("accepted", "accepted"), ("disabled", "paused")])
def test_apply_says_that_a_paused_rule_is_active_again(own: Served, state: str, shown: str) -> None:
    is_active = state == "accepted"
    ledger = own.clients.storage.bucket(own.clients.context.ledger_bucket)
    book = json.loads(bytes(ledger.blob("rules/book.json").download_as_bytes()))
    book["rules"][1]["document"]["enabled"] = False
    own.write("ledger", "rules/book.json", book)
    done = applied(own, f"{shipped('schedule')}enabled: {json.dumps(is_active)}\n", state=state)
    assert (done.status, done.out) == (0, f"weekly {shown}\n"), done.err
    assert ("weekly was paused, and is active again" in done.err) is is_active


def test_apply_warns_of_a_watched_bucket_that_does_not_exist(own: Served) -> None:
    book = example("rule_book.v1.one_rule")
    watched = ("my-project-data", "trainmaster-local-data")  # the second exists
    when = [{"new_data": {"objects": f"gs://{bucket}/**"}} for bucket in watched]
    changes = {"rule_id": "watch", "dropped_name": "rules/watch.yaml"}
    document = {**book["rules"][0]["document"], "when": when}
    book["rules"] = [{**book["rules"][0], **changes, "document": document}]
    own.write("ledger", "rules/book.json", book)
    done = applied(own, shipped("new-data").replace("=cassava", "=gs://$BUCKET"), "watch.yaml")
    assert (done.status, done.out) == (0, "watch accepted\n"), done.err
    assert "warning: $.request.args[0]: $BUCKET looks like a template that was not filled in" in done.err
    assert "Warning: watch watches gs://my-project-data, which does not exist." in done.err
    assert "trainmaster-local-data, which" not in done.err


def test_check_and_apply_warn_of_a_request_that_names_one_folder_of_several(own: Served) -> None:
    done = applied(own, shipped("new-data").replace("data.manifest_uri", "data.newest_dir_uri"))
    checked = own.trainmaster("check", "weekly.yaml")
    assert (checked.status, done.status) == (0, 0)
    said = "weekly.yaml:5:5: warning: $.when[0].new_data: a firing may take objects of several folders"
    for text in (checked.out, done.err):
        assert text.count(said) == 1
        assert "use ${data.manifest_uri} or ${data.dirs}, or write each: folder" in text


@pytest.mark.parametrize("model", ["cassava-resnet50", "flowers-b0"])
def test_apply_names_the_model_of_a_rule_that_the_file_replaces(own: Served, model: str) -> None:
    text = re.sub("model_name: .*", f"model_name: {model}", shipped("schedule"))
    done = applied(own, text, "other/weekly.yaml")
    assert (done.status, done.out) == (0, "weekly accepted\n"), done.err
    said = (
        "other/weekly.yaml replaces the rule for cassava-resnet50, whose file had the same name. "
        "To have both rules, rename one of the files, and apply both.\n"
    )
    assert (said in done.err) is (model != "cassava-resnet50")


def test_several_rules_are_removed_at_once_and_none_if_one_is_unknown(own: Served) -> None:
    inbox = own.clients.storage.bucket(own.clients.context.inbox_bucket)
    names = ["rules/weekly.yaml", "rules/bad.yaml"]
    assert own.trainmaster("rules", "rm", "weekly", "bda", "--yes").status == 3
    assert all(inbox.blob(name).exists() for name in names)
    done = own.trainmaster("rules", "rm", "weekly", "rules/bad.yaml", "weekly", "--yes")
    assert (done.status, len(done.out.splitlines())) == (0, 2), done.err
    assert not any(inbox.blob(name).exists() for name in names)


def test_a_rule_whose_file_is_deleted_is_retiring(served: Served) -> None:
    refused = served.trainmaster("rules", "rm", "weekly")
    assert (refused.status, refused.out) == (2, "")
    assert "needs --yes" in refused.err
    assert served.trainmaster("rules", "rm", "weekly", "--yes").status == 0
    (row,) = (row for row in served.trainmaster("rules", "ls").out.splitlines() if row.startswith("weekly"))
    assert row.split()[1] == "retiring"
    fired = served.trainmaster("rules", "fire", "weekly", "--wait-s", "0")
    assert (fired.status, fired.out) == (1, "")
    assert "The rule weekly is removed, so it cannot fire." in fired.err


@pytest.mark.parametrize(
    ("run_id", "reason"),
    [
        ("unknown-20260301t120001-c15a2ca08d", "unknown-20260301t120001-c15a2ca08d was never champion"),
        ("b-20260301t121100-6024327c9f", "b-20260301t121100-6024327c9f is already the champion"),
    ],
)
def test_a_rollback_that_the_service_would_refuse_is_not_sent(
    served: Served, run_id: str, reason: str
) -> None:
    done = served.trainmaster("champions", "rollback", "cassava-resnet50", "--to-run", run_id)
    assert (done.status, done.out) == (2, "")
    assert "The champion of 'cassava-resnet50' stays: " in done.err
    assert f"{reason}. See: trainmaster champions show cassava-resnet50" in done.err


PENDING = example("champion.v1.pending")


def test_a_challenger_that_waits_is_shown_with_the_command_and_decided(served: Served) -> None:
    served.write("ledger", "champions/waiting.json", PENDING | {"model_name": "waiting"})
    command = f"trainmaster champions approve waiting {PENDING['pending']['reign']['run_id']}"
    assert command in served.trainmaster("champions", "show", "waiting").out
    assert command in served.trainmaster("champions", "ls").err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ("waiting", "another-run"),
            "another-run does not wait for approval, but c-20260301t122200-a781e6ad62 does",
        ),
        (("cassava-resnet50",), "no challenger waits for approval"),
        (("waiting", "--reject"), "no challenger waits for approval"),
    ],
)
def test_an_approval_that_the_service_would_refuse_is_not_sent(
    served: Served, words: tuple[str, ...], reason: str
) -> None:
    expires_at = "2000-01-01T00:00:00Z" if "--reject" in words else "2999-01-01T00:00:00Z"
    pending = PENDING["pending"] | {"expires_at": expires_at}
    served.write("ledger", "champions/waiting.json", PENDING | {"model_name": "waiting", "pending": pending})
    done = served.trainmaster("champions", "approve", *words)
    assert (done.status, done.out) == (2, "")
    assert f"stays: {reason}. See: trainmaster champions show {words[0]}" in done.err


def pruned(own: Served, words: str, **rules: str) -> tuple[Done, bool]:
    """What `rules apply` does with a folder of these rules, and whether it left every file as it was."""
    (own.folder / "rules").mkdir()
    (own.folder / "rules/README.md").write_text("not a rule")
    for name, text in rules.items():
        (own.folder / f"rules/{name}.yaml").write_text(text)
    bucket = own.clients.context.inbox_bucket
    before = {blob.name: blob.generation for blob in own.clients.storage.list_blobs(bucket)}
    done = own.trainmaster("rules", "apply", *words.split())
    return done, before == {blob.name: blob.generation for blob in own.clients.storage.list_blobs(bucket)}


@pytest.mark.parametrize("words", ["--prune rules", "--prune rules --plan"])
def test_every_change_to_a_folders_rules_is_shown_and_none_is_made_without_a_yes(
    own: Served, words: str
) -> None:
    done, is_same = pruned(own, words, weekly=shipped("schedule"), fresh=shipped("schedule"))
    assert (done.status, is_same) == (0 if "plan" in words else 2, True), done.err
    assert [line for line in done.err.splitlines() if " rules/" in line] == [
        *("add rules/fresh.yaml", "change rules/weekly.yaml", "remove rules/bad.yaml"),
        *("remove rules/cassava/new-data.yaml", "remove rules/new.yaml"),
    ]


def test_the_faults_of_all_files_of_a_folder_are_shown_and_nothing_is_changed(own: Served) -> None:
    one, two = (f"{shipped('schedule')}{key}: 1\n" for key in "xy")
    done, is_same = pruned(own, "--prune rules --yes", sound=shipped("schedule"), one=one, two=two)
    assert (done.status, is_same) == (2, True)
    assert "unknown key 'x'" in done.err
    assert "unknown key 'y'" in done.err


def test_a_folder_or_a_broken_link_in_place_of_a_rules_file_removes_no_rule(own: Served) -> None:
    (own.folder / "link.yaml").symlink_to("gone")
    (own.folder / "team.yaml").mkdir()
    done, is_same = pruned(own, "--prune . --yes")
    assert (done.status, is_same) == (2, True)
    assert "link.yaml, team.yaml: expected files." in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--prune rules --yes", "rules has no rule, so all would be removed. If you mean it: --allow-empty"),
        ("--prune nowhere", "--prune takes a folder, and nowhere is none: No such file or directory."),
        ("--prune rules rules", "--prune takes one folder with all rules"),
        ("--prune rules --allow-empty", "--prune needs --yes where no one can be asked."),
        ("rules --yes", "--plan, --allow-empty and --yes are for --prune."),
    ],
)
def test_what_cannot_be_meant_by_a_folder_is_refused_in_a_sentence(
    own: Served, words: str, said: str
) -> None:
    done, is_same = pruned(own, words)
    assert (done.status, done.out, is_same) == (2, "", True)
    assert said in done.err
