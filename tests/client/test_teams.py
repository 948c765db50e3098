"""The command sends a team's files into the team's folder, and in no other way."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.client.runs.rows import row, write_row
from tests.client.served import Served
from tests.contract.functions import until
from trainmaster.client.context import choose_context, context_in_cloud
from trainmaster.client.errors import ClientRefused
from trainmaster.client.rules.changing import examined_rules
from trainmaster.client.rules.orders import give_order
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.examination import examination_of
from trainmaster.client.submission.send import publish, started_with
from trainmaster.client.submission.source import RequestSource
from trainmaster.client.submission.terms import (
    SHIPPED_POLICY,
    Terms,
    names_of,
    read_policy,
    rules_for,
    shipped_prices,
)
from trainmaster.orchestrator.core.policy.policy import Policy, policy_from
from trainmaster.orchestrator.core.requests.request import RequestRules

ALONE = context_in_cloud("my-project", "us-central1")
VISION = replace(ALONE, team="vision")
REQUEST = b"model_name: m\nimage: us-central1-docker.pkg.dev/my-project/trainmaster/own:1\ncluster: {chief: {machine: n1-standard-4}}\n"


def policy(*teams: str) -> Policy:
    document = yaml.safe_load(SHIPPED_POLICY.read_text()) | {"teams": {team: {} for team in teams}}
    return policy_from(document, names_of(ALONE))


def terms(*teams: str) -> Terms:
    """Those of the team vision."""
    rules = rules_for(VISION, policy(*teams))
    return Terms(context=VISION, rules=rules, prices=shipped_prices(), source="a test")


def team_of(rules: RequestRules) -> str | None:
    assert rules.policy is not None
    return rules.policy.team


def test_the_team_is_that_of_the_variable_or_else_the_only_one(tmp_path: Path) -> None:
    variables = {"TRAINMASTER_CONTEXT": "my-project/us-central1", "TRAINMASTER_TEAM": "vision"}
    chosen = choose_context(None, variables, directory=tmp_path, settings=tmp_path)
    assert chosen.team == "vision"
    assert team_of(rules_for(chosen, policy("vision", "speech"))) == "vision"
    assert team_of(rules_for(ALONE, policy("speech"))) == "speech"
    assert team_of(rules_for(VISION, read_policy(SHIPPED_POLICY, VISION))) is None


@pytest.mark.parametrize(
    ("team", "found"),
    [(None, "neither --team nor TRAINMASTER_TEAM names your team"), ("x", "no team is called 'x'")],
)
def test_with_several_teams_one_must_be_chosen(team: str | None, found: str) -> None:
    with pytest.raises(ClientRefused) as refused:
        rules_for(replace(ALONE, team=team), policy("vision", "speech"))
    assert str(refused.value) == (
        f"{found}; this deployment's teams: vision, speech. "
        "Choose yours: --team vision, or export TRAINMASTER_TEAM=vision"
    )


def test_a_teams_request_and_script_go_into_its_folders(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print(1)\n")
    made = examination_of(
        RequestSource(file="request.yaml", content=REQUEST), terms("vision", "speech"), Edits(script=script)
    )
    assert made.faults == ()
    assert made.object_name == "requests/vision/m.yaml"
    archive = yaml.safe_load(made.content)["script"]["archive"]
    assert archive.startswith("gs://my-project-data/vision/scripts/")
    assert made.request is not None
    assert made.request.document["output"] == {"prefix_uri": "gs://my-project-models/vision"}


def test_a_teams_request_with_a_key_is_uploaded_once(served: Served) -> None:
    made = examination_of(RequestSource(file="r.yaml", content=REQUEST), terms("vision"))
    assert started_with(served.clients, made, "nightly") is None
    sent = publish(served.clients, made, "nightly")
    assert sent.where.startswith("gs://trainmaster-local-inbox/requests/vision/message-key-")
    assert started_with(served.clients, made, "nightly") == replace(sent, is_repeated=True)
    other = examination_of(RequestSource(file="r.yaml", content=REQUEST + b"args: [--x]\n"), terms("vision"))
    with pytest.raises(ClientRefused, match="and the request differs"):
        started_with(served.clients, other, "nightly")


def test_a_teams_rule_is_checked_and_dropped_under_its_name(served: Served) -> None:
    content = b"when: [{new_data: {objects: 'gs://my-project-data/speech/**'}}]\nrequest:\n" + b"".join(
        b"  " + line + b"\n" for line in REQUEST.splitlines()
    )
    source = RequestSource(file="nightly.yaml", content=content)
    (found,) = examined_rules(served.clients, terms("vision"), [source], Edits())
    assert found.object_name == "rules/vision/nightly.yaml"
    assert [fault.path for fault in found.faults] == ["$.when[0].new_data.objects"]


def test_a_teams_order_is_dropped_into_its_folder_and_followed(served: Served) -> None:
    inbox = served.clients.storage.bucket(served.clients.context.inbox_bucket)

    def answer() -> None:
        until(lambda: any(inbox.list_blobs(prefix="requests/speech/")), "the order is dropped")
        (blob,) = inbox.list_blobs(prefix="requests/speech/order-")
        assert json.loads(blob.download_as_bytes()) == {"cancel": {"run": "run-1"}}
        served.write("ledger", f"status/{blob.name}.json", {"state": "succeeded", "run_id": "order-1"})

    with ThreadPoolExecutor(1) as pool:
        answered = pool.submit(answer)
        order = {"cancel": {"run": "run-1"}}
        order_id, status = give_order(served.clients, order, team="speech", timeout_s=120)
        answered.result(120)
    assert (order_id, status["state"]) == ("order-1", "succeeded")


def test_ls_shows_the_team_and_filters_by_it(served: Served) -> None:
    write_row(served, replace(row(1, model_name="flowers"), team="vision"))
    write_row(served, replace(row(2, model_name="flowers"), team="speech"))
    assert served.trainmaster("ls", "-o", "name", "--team", "vision").out.split() == ["run-1"]
    assert "vision/flowers" in served.trainmaster("ls").out
