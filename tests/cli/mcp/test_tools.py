"""The tools without their transport, on a context whose only service is storage: nothing in it can be started."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.client.runs.rows import row, write_row
from tests.client.served import BUCKETS, PROJECT, Served, deployment, run_record, served_context
from tests.fixtures import fixture_of
from tests.repo import skill
from trainmaster.cli.mcp.budget import Budget
from trainmaster.cli.mcp.changes import REJECTED, Session, planned_request
from trainmaster.cli.mcp.server import answer_call
from trainmaster.cli.mcp.tokens import CHANGES, LIFETIME_S, Tokens
from trainmaster.cli.mcp.tools import ACTIONS, DATA_MAX_BYTES, OWN, ROUTES, cut_answer, read_tools
from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.send import Sent
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT, message_status_object, record_object
from trainmaster.orchestrator.core.requests.incoming import run_id_of_message_key
from trainmaster.orchestrator.core.runs.index import INDEX_PREFIX
from trainmaster.orchestrator.core.runs.record import Estimate, RunGroup
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.web.source import ConsoleSource

REQUEST = """\
model_name: flowers
image: us-central1-docker.pkg.dev/trainmaster-local/trainmaster/trainer:latest
cluster: {chief: {machine: n1-standard-4}}
scheduling: {timeout_s: 3600}
"""
TOOLS = read_tools(is_read_only=False)
PLANNED = dict.fromkeys(CHANGES, "x")
LABEL = {"session": "s"}
AGAIN = "Nothing was changed. Plan again, and use the new token."


served = fixture_of(served_context, publishes=True)


@pytest.fixture(autouse=True)
def nothing_changes(served: Served) -> Iterator[None]:
    """Whatever a test asks for, no bucket gets or loses anything."""
    buckets = [f"{PROJECT}-{bucket}" for bucket in BUCKETS]
    before = [[blob.name for blob in served.clients.storage.list_blobs(each)] for each in buckets]
    yield
    served.write("ledger", DEPLOYMENT_OBJECT, deployment())
    assert [[blob.name for blob in served.clients.storage.list_blobs(each)] for each in buckets] == before


@pytest.fixture
def session(served: Served, tmp_path: Path) -> Session:
    (tmp_path / "request.yaml").write_text(REQUEST)
    source = ConsoleSource(lambda: served.clients.context, writable=True)
    return Session(
        source=source, folder=tmp_path, labels={"agent": "true", **LABEL}, budget=Budget(None, LABEL)
    )


UNKNOWN = "A session with a budget needs a known cost in US dollars."


def ask(session: Session, name: str, /, **arguments: object) -> Any:
    text, is_error = answer_call(session, name, arguments)
    return text if is_error else json.loads(text)


@pytest.mark.parametrize("name", sorted(TOOLS.keys() - OWN.keys()))
def test_the_arguments_of_a_tool_are_those_of_its_resource_or_action(name: str) -> None:
    path = TOOLS[name].path
    of_path = {*re.findall(r"\{(\w+)", path)}
    more = (
        {"to_run", "decision", "token"}
        if path in ACTIONS
        else {each.name for each in ROUTES[path].parameters}
    )
    more |= {"limit", "page"} if TOOLS[name].pages else set()
    assert TOOLS[name].takes.keys() <= of_path | more
    assert set(TOOLS[name].needs) == of_path


def test_a_read_only_server_has_no_tool_that_changes_something_and_plans_without_a_token(
    served: Served, session: Session
) -> None:
    reading = replace(session, source=ConsoleSource(lambda: served.clients.context, writable=False))
    left_out = TOOLS.keys() - read_tools(is_read_only=True).keys()
    assert left_out == {"submit", "cancel", "champion_rollback", "champion_approve"}
    assert "token" not in ask(reading, "plan", file="request.yaml")
    assert ask(reading, "submit", token="x").startswith("There is no tool 'submit' here")


@pytest.mark.parametrize("name", TOOLS)
def test_bad_arguments_and_unknown_names_are_named(session: Session, name: str) -> None:
    needed: dict[str, object] = dict.fromkeys(TOOLS[name].needs, "no-such-name")
    assert ask(session, name, **needed, wrong=1).startswith(f"{name}: $.wrong: unknown key 'wrong'")
    if needed:
        assert ask(session, name).startswith(f"{name}: $.{TOOLS[name].needs[0]}: missing")
    if needed and name != "submit":
        assert "no-such-name" in ask(session, name, **needed)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "Give either file, a path, or text"),
        ({"file": "../request.yaml"}, "is outside"),
        ({"file": "link.yaml"}, "is outside"),
        ({"file": "a\0b"}, "is outside"),
        ({"file": "none.yaml"}, "No such file"),
        ({"text": "model_name: [\n"}, "-:2:1: $: broken YAML"),
        ({"text": REQUEST, "set": ["clutser.chief=1"]}, "unknown key 'clutser'"),
        ({"text": REQUEST, "set": {"args": ["--a"], "model_name": "m"}}, 'write ["args=[\\"--a\\"]", "model_name=m"]'),
        ({"text": REQUEST.replace("model_name: flowers\n", "")}, "$.model_name: missing"),
    ],
)  # fmt: skip
def test_a_wrong_document_is_refused_with_what_is_wrong(
    session: Session, arguments: dict[str, Any], said: str
) -> None:
    (session.folder / "link.yaml").symlink_to("/etc/passwd")
    assert said in ask(session, "plan", **arguments)
    assert said in ask(session, "submit", **arguments, token="x")


@pytest.mark.parametrize(
    "script",
    [
        "{file: train.py}",
        "{file: toml/train.py}",
        "{root: ../none, file: train.py}",
        "{root: ../ws, file: privat.py}",
        "{root: linked/sub/../../../ws, file: train.py}",
    ],
)
def test_packing_names_nothing_outside_the_folder(session: Session, tmp_path: Path, script: str) -> None:
    for name in ("inner", "inner/deep/er/sub", "inner/toml", "ws"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "train.py").touch()
    (tmp_path / "ws/private.py").touch()
    (tmp_path / "pyproject.toml").write_text('index = "https://me:pass1234word@host/x"\n')
    for link, target in ("linked", "inner/deep/er"), ("toml/pyproject.toml", "pyproject.toml"):
        (tmp_path / "inner" / link).symlink_to(tmp_path / target)
    (tmp_path / "inner/request.yaml").write_text("model_name: m\n")
    for key in ("script", "champion.evaluate.script"):
        edited = {"file": "request.yaml", "set": [f"{key}={script}"]}
        said = json.dumps(ask(replace(session, folder=tmp_path / "inner"), "check", **edited))
        assert "Only files below that are read here" in said
        assert not re.search("private|a password|not a folder", said)
    (tmp_path / "pyproject.toml").write_text("")
    assert ask(session, "plan", file="inner/request.yaml", set=["script={file: train.py}"])["token"]


def test_a_token_is_refused_once_what_it_is_bound_to_has_changed(served: Served, session: Session) -> None:
    planned = ask(session, "plan", file="request.yaml", set=["labels.session=other", "labels.mine=1"])
    assert planned["data"]["request"]["labels"] == {"agent": "true", "session": "s", "mine": "1"}
    same = {"file": "request.yaml", "token": ask(session, "plan", file="request.yaml")["token"]}
    assert "a file, an argument or its subject" in ask(session, "submit", **same, set=["args=[--x=1]"])
    published = deployment()
    published["policy"]["admission"] = {"confirm_above_usd": 5}
    served.write("ledger", DEPLOYMENT_OBJECT, published)
    said = ask(session, "submit", **same)
    assert said == f"Since the plan, the deployment's policy or prices have changed. {AGAIN}"
    (session.folder / "request.yaml").write_text(REQUEST.replace("3600", "7200"))
    assert "the estimated cost has changed" in ask(session, "submit", **same)


@pytest.mark.parametrize("wrong", [Tokens().make(PLANNED), "x", "é.é"])
def test_a_token_of_another_server_or_one_that_was_altered_is_refused(session: Session, wrong: str) -> None:
    own = ask(session, "plan", file="request.yaml")["token"]
    for each in (wrong, own[:-1]):
        said = ask(session, "submit", file="request.yaml", token=each)
        assert said == f"This token is not of this server, or it was changed. {AGAIN}"


def test_a_token_expires_and_is_good_for_one_change() -> None:
    now = 1000.0
    tokens = Tokens(clock=lambda: now)
    once, late = tokens.make(PLANNED), tokens.make(PLANNED)
    tokens.check(once, PLANNED)
    with pytest.raises(ClientRefused, match="used before"):
        tokens.check(once, PLANNED)
    with pytest.raises(ClientRefused, match="the call is for another tool"):
        tokens.check(late, PLANNED | {"action": "cancel"})
    now += LIFETIME_S + 1
    with pytest.raises(ClientRefused, match="older than 10 minutes"):
        tokens.check(late, PLANNED)


def test_a_rejected_request_is_refused_again_with_its_faults(served: Served, session: Session) -> None:
    token, ledger = ask(session, "plan", file="request.yaml")["token"], f"{PROJECT}-ledger"
    key = planned_request(session, {"file": "request.yaml", "repeat": 1})[2]
    run_id, status = run_id_of_message_key(key), message_status_object(message_id="", idempotency_key=key)
    record = run_record("failed", run_id=run_id, state="rejected", problems=["$.image: gone"])
    del record["request"]
    served.write("ledger", record_object(run_id), record)
    served.write("ledger", status, {**record, "schema": "drop_status.v1"})
    assert ask(session, "submit", file="request.yaml", token=token) == f"$.image: gone\n{REJECTED}"
    served.clients.storage.bucket(ledger).delete_blobs([record_object(run_id), status])


def test_a_request_stays_reserved_unless_it_was_certainly_not_sent(session: Session) -> None:
    budget, cost = Budget(Decimal(1), LABEL), Estimate(currency="USD", at_most=Decimal("0.6"))
    refused, lost, over = ClientRefused("No."), TimeoutError("lost"), ClientRefused("Over the budget")

    def fail(error: Exception) -> NoReturn:
        raise error

    for key, error in ("a", refused), ("a", lost), ("a", lost), ("b", over):
        with pytest.raises(type(error), match=str(error)):
            budget.spend(session.source, key, cost, partial(fail, error))
    assert budget.spent(session.source) == cost.at_most


def test_a_run_of_unknown_cost_counts_with_the_most_that_it_may_cost(
    served: Served, session: Session
) -> None:
    unknown = row(1, labels=LABEL, job_id="7", at_most=Decimal(2))
    write_row(served, unknown)
    write_row(served, row(2, labels=LABEL, state=RunState.CANCELLED, at_most=Decimal(4)))
    assert Budget(Decimal(9), LABEL).spent(session.source) == unknown.at_most
    ledger = served.clients.storage.bucket(f"{PROJECT}-ledger")
    ledger.delete_blobs([*ledger.list_blobs(prefix=INDEX_PREFIX)])


def test_the_jobs_that_follow_a_run_count_until_they_are_over(served: Served, session: Session) -> None:
    budget, ledger = Budget(Decimal(9), LABEL), served.clients.storage.bucket(f"{PROJECT}-ledger")
    own = row(1, labels=LABEL, job_id="7", at_most=Decimal(2))
    sent = Sent(run_id=own.run_id, where="", status_name="")
    budget.spend(session.source, "a", Estimate(currency="USD", at_most=Decimal(3)), lambda: sent)
    budget.runs["a"] = sent.run_ids
    record = run_record(run_id=own.run_id)
    written = [own, replace(own, state=RunState.SUCCEEDED, cost=Decimal(1), generation=own.generation + 1)]
    for step, (each, spent) in enumerate(zip([*written, written[1]], (3, 2, 1), strict=True)):
        record["completion"]["steps_done"] = ["evaluation", "registry"] if step > 1 else []
        served.write("ledger", record_object(own.run_id), record)
        write_row(served, each)
        assert budget.spent(session.source) == spent
    ended = replace(written[1], cost=Decimal("2.5"), generation=own.generation + 2)
    write_row(served, ended)
    again = Budget(Decimal(9), LABEL)
    again.runs, again._reserved = budget.runs, budget._reserved
    record["completion"]["steps_done"] = ["evaluation"]
    served.write("ledger", record_object(own.run_id), record)
    assert again.spent(session.source) == 3  # what the evaluation has cost is not reserved a second time
    ledger.delete_blob(record_object(own.run_id))
    assert again.spent(session.source) == 3
    ledger.delete_blobs([*ledger.list_blobs(prefix=INDEX_PREFIX)])


def test_a_group_is_cancelled_in_the_same_two_steps(served: Served, session: Session) -> None:
    group = RunGroup(id="flowers-20260301t120000-eb46bb303f", number=1, runs=2)
    for number, (run_id, state) in enumerate(zip(group.run_ids, ("running", "succeeded"), strict=True), 1):
        record = run_record(run_id=run_id, state=state)
        record["source"]["group"] = {"id": group.id, "number": number, "runs": 2}
        served.write("ledger", record_object(run_id), record)
    first = ask(session, "cancel", run_id=group.id)
    assert ([each.split()[0] for each in first["data"]["effects"]], "token" in first) == (
        [group.run_ids[0]],
        True,
    )
    served.clients.storage.bucket(f"{PROJECT}-ledger").delete_blobs([*map(record_object, group.run_ids)])


def test_a_request_beyond_the_budget_or_of_unknown_cost_is_refused(served: Served, session: Session) -> None:
    poor, published = replace(session, budget=Budget(Decimal("0.2"), LABEL)), deployment()
    planned = ask(poor, "plan", file="request.yaml")
    assert (planned["budget_usd"], planned["spent_or_reserved_usd"]) == ("0.2", "0.000000")
    over = "Over the budget: this may cost up to 0.25 USD, and of 0.2 USD 0.00 are spent, or"
    assert (planned["refusal"].startswith(over), "token" in planned) == (True, False)
    token = ask(session, "plan", file="request.yaml")["token"]
    assert ask(poor, "submit", file="request.yaml", token=token).startswith(over)
    published["prices"]["currency"] = "EUR"
    served.write("ledger", DEPLOYMENT_OBJECT, published)
    assert ask(poor, "plan", file="request.yaml")["refusal"] == UNKNOWN
    token = ask(session, "plan", file="request.yaml")["token"]
    said = ask(poor, "submit", file="request.yaml", token=token)
    assert said == f"{UNKNOWN} Nothing was sent."


def test_long_texts_and_lists_are_cut_and_named_and_an_answer_is_bounded() -> None:
    answer = cut_answer({"data": {"text": "x" * 3000, "list": list(range(200))}, "notes": ""})
    assert answer["cut"] == ["$.text: 1000 more characters", "$.list: 100 more entries"]
    assert "notes" not in answer
    for large in (
        {str(n): "x" * 100 for n in range(5000)},
        [[["x" * 50] * 90] * 90] * 90,
        ["x" * 1990] * 100,
    ):
        assert len(json.dumps(cut_answer({"data": large}))) < DATA_MAX_BYTES + 1000


@pytest.mark.parametrize("words", ["--label Agent=x", "--label agent", "--session My", "--budget-usd nan"])
def test_a_wrong_option_is_wrong_usage(served: Served, words: str) -> None:
    done = served.trainmaster("mcp", *words.split())
    assert (done.status, done.out, words.split(maxsplit=1)[0] in done.err) == (2, "", True)


def test_the_table_of_tools_and_the_skill_file_are_up_to_date() -> None:
    for path, text in skill.files().items():
        assert path.read_text() == text, "run: python -m tests.repo.skill"
