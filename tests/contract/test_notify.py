"""Notices reach the policy's receivers: each of those that are left, until it has answered; and delay nothing else."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.contract.boundaries import At, only_at
from tests.contract.schemas import DELIVERIES
from tests.contract.test_champions import REQUEST, SOURCE, run
from tests.contract.test_evaluation import ended, evaluated
from tests.contract.world import LEDGER, Boundary, Killed, World, request_rules_with
from tests.memory import MemoryReceivers
from trainmaster.orchestrator.core.documents.codec import decoded, json_line
from trainmaster.orchestrator.core.errors import EventMalformed, ReceiversLeft
from trainmaster.orchestrator.core.events.envelope import pubsub_message
from trainmaster.orchestrator.core.notices.notice import Notice, cloud_event, receiver_test
from trainmaster.orchestrator.core.notices.payloads import COMMIT_STATES
from trainmaster.orchestrator.core.policy.receivers import Receiver
from trainmaster.orchestrator.flows.notify import send_notice
from trainmaster.orchestrator.flows.services import FlowResult
from trainmaster.orchestrator.log_events import LogEvent

HOOK = "https://hooks.slack.test/services/T0/B0/s3cret"
OPS: dict[str, Any] = {"name": "ops", "webhook": {"url": "https://ops.test/hook", "secret": "hmac"}}
SLACK: dict[str, Any] = {"name": "slack", "slack": {"secret": "slack-url"}}
MAIL: dict[str, Any] = {"name": "mail", "email": {"to": ["a@example.com"]}}
COMMITS: dict[str, Any] = {"name": "commits", "github": {"repository": "o/n", "secret": "token"}}
SECRETS = {"hmac": "k3y", "slack-url": HOOK, "token": "t0ken"}
SHA = "0123456789abcdef0123456789abcdef01234567"


class NoticeWorld(World):
    """A deployment whose policy has these receivers."""

    def __init__(self, *receivers: Mapping[str, Any]) -> None:
        notify = tuple(decoded(Receiver, each) for each in receivers)
        super().__init__(request_rules_with(notify=notify))
        self.receivers = MemoryReceivers(secrets=dict(SECRETS))

    def delivery(self, notice: Notice, boundary: Boundary | None = None) -> Iterator[FlowResult]:
        """A delivery that begins with its first result."""
        data = base64.b64encode(json_line(cloud_event(notice, SOURCE)).encode()).decode()
        message = pubsub_message(self.envelope({"message": {"messageId": "1", "data": data}}))
        return iter(send_notice(self.services(boundary), self.receivers, message))

    def deliver(self, notice: Notice, boundary: Boundary | None = None) -> list[FlowResult]:
        return list(self.delivery(notice, boundary))

    def try_to_deliver(self, notice: Notice) -> str:
        """Deliver it, and return why it must be delivered again; empty if it need not."""
        try:
            self.deliver(notice)
        except ReceiversLeft as left:
            return str(left)
        return ""

    def notice(self, kind: str, index: int = -1) -> Notice:
        return [each for each in self.notices.published if f".{kind}." in each.type][index]

    def deliveries(self) -> list[dict[str, Any]]:
        names = [each.name for each in self.objects.listing(LEDGER, "notices/")]
        found = [self.document(name) for name in names]
        for document in found:
            DELIVERIES.validate(document)
        return found

    def state_of(self, receiver: str) -> tuple[str, int, str | None]:
        (document,) = self.deliveries()
        delivery = document["receivers"][receiver]
        return delivery["state"], delivery["attempts"], delivery.get("reason")


def test_the_message_says_what_happened_to_which_model_beside_the_champion() -> None:
    world = NoticeWorld(OPS)
    run(world, "a", 0.7)
    run_id = run(world, "b", 0.8)
    world.deliver(world.notice("succeeded"))
    world.deliver(world.notice("promoted"))
    (of_run, of_champion) = [json.loads(post.body)["message"] for post in world.receivers.posts]
    assert of_run.startswith(
        f"cassava-resnet50: {run_id} succeeded, accuracy 0.8 (champion 0.7), loss 1 (champion 1), the new champion"
    )
    assert of_champion.startswith(
        f"cassava-resnet50: {run_id} is the new champion, accuracy 0.8 (champion 0.7)"
    )
    for message in (of_run, of_champion):
        assert " · https://console.cloud.google.com/" in message
        assert message.endswith(f" · trainmaster why {run_id}")


def test_the_message_has_what_an_evaluation_measured_of_both_models_and_not_what_the_program_claims() -> None:
    world = NoticeWorld(OPS)
    first = evaluated(world, "a", 1.0, challenger=0.7)
    loser = evaluated(world, "b", 1.0, challenger=0.5, champion=0.65)
    for index in (0, -1):
        world.deliver(world.notice("succeeded", index))
    (of_first, of_loser) = [json.loads(post.body)["message"] for post in world.receivers.posts]
    assert of_first.startswith(f"cassava-resnet50: {first} succeeded, accuracy 0.7, the new champion")
    assert of_loser.startswith(
        f"cassava-resnet50: {loser} succeeded, accuracy 0.5 (champion 0.65), not champion"
    )


def test_the_message_of_a_challenger_that_waits_for_approval_says_so() -> None:
    world = NoticeWorld(OPS)
    ended(world, "a", 0.7, approve=True)
    world.deliver(world.notice("succeeded"))
    (post,) = world.receivers.posts
    assert "succeeded, accuracy 0.7, loss 1, waits for approval" in json.loads(post.body)["message"]


def test_the_message_of_a_rejected_run_has_its_first_fault_without_what_was_found() -> None:
    world = NoticeWorld(OPS)
    incoming = world.drop_and_launch(b"model_name: Bad Name\nimgae: x\n")
    world.reconcile()
    world.deliver(world.notice("rejected"))
    (post,) = world.receivers.posts
    message = json.loads(post.body)["message"]
    assert message.startswith(
        f"a request: {incoming.run_id} rejected: $.imgae: unknown key 'imgae' (and 1 more)"
    )


@pytest.mark.parametrize("receivers", [(), ({**OPS, "when": {"models": ["other-*"]}},)])
def test_a_notice_that_no_receiver_gets_costs_no_call(receivers: tuple[Mapping[str, Any], ...]) -> None:
    world, boundary = NoticeWorld(*receivers), Boundary()
    run(world, "a", 0.7)
    for notice in world.notices.published:
        assert world.deliver(notice, boundary) == []
    assert (boundary.calls, world.receivers.posts, world.deliveries()) == ([], [], [])


def test_a_webhook_is_signed_over_its_time_and_its_body_and_has_the_notices_id() -> None:
    """Verified by hand as https://docs.stripe.com/webhooks/signature and https://www.standardwebhooks.com describe it."""
    world = NoticeWorld(OPS)
    run_id = run(world, "a", 0.7)
    world.deliver(world.notice("succeeded"))
    (post,) = world.receivers.posts
    timestamp = post.headers["X-Trainmaster-Timestamp"]
    assert int(timestamp) == int(world.clock.now().timestamp())
    signed = hmac.digest(
        SECRETS["hmac"].encode(), timestamp.encode() + b"." + post.body, hashlib.sha256
    ).hex()
    assert post.headers["X-Trainmaster-Signature"] == f"v1={signed}"
    assert post.headers["Idempotency-Key"] == f"{run_id}/succeeded" == json.loads(post.body)["id"]


def test_only_the_receivers_that_are_left_get_it_again_and_the_answer_decides_which_are_left() -> None:
    refusing = {"name": "gone", "webhook": {"url": "https://gone.test/", "secret": "hmac"}}
    world = NoticeWorld(OPS, SLACK, refusing)
    world.receivers.answers = {"ops.test": [500, 429, 302, 408, 200], "gone.test": [410]}
    run(world, "a", 0.7)
    notice = world.notice("succeeded")
    reasons = [world.try_to_deliver(notice) for _ in range(6)]
    assert [reason.partition(": ")[2] for reason in reasons] == [
        "HTTP 500", "HTTP 429", "HTTP 302: redirects are not followed", "HTTP 408", "", "",
    ]  # fmt: skip
    assert [post.url for post in world.receivers.posts].count(OPS["webhook"]["url"]) == 5
    assert len(world.receivers.posts) == 7
    assert world.state_of("ops") == ("delivered", 5, None)
    assert world.state_of("slack") == ("delivered", 1, None)
    assert world.state_of("gone") == ("refused", 1, "HTTP 410")


def test_no_secret_is_in_a_record_a_log_line_or_an_error() -> None:
    world = NoticeWorld(OPS, SLACK, {"name": "none", "slack": {"secret": "missing"}})
    world.receivers.answers = {"ops.test": [500], "hooks.slack.test": [403]}
    run(world, "a", 0.7)
    texts = list[str]()
    with pytest.raises(ReceiversLeft) as left:
        texts.extend(result.message for result in world.delivery(world.notice("succeeded")))
    texts += [str(left.value), json.dumps(world.deliveries()), repr(world.receivers.posts)]
    for secret in (*SECRETS.values(), "hooks.slack.test"):
        assert secret not in "\n".join(texts)
    assert "missing is missing, or not one line" in str(left.value)


def test_an_email_is_one_line_of_the_log_that_names_its_receiver() -> None:
    world = NoticeWorld(MAIL)
    run(world, "a", 0.7)
    notice = world.notice("succeeded")
    results = [each for _ in range(2) for each in world.deliver(notice)]
    (line,) = [each for each in results if each.event is LogEvent.NOTICE_EMAIL]
    assert line.receiver == "mail"
    assert "succeeded" in line.message


def test_a_commit_status_shows_the_state_on_record_whichever_notice_comes_last() -> None:
    """Fields and states are those of GitHub's own description of the route, `repos/create-commit-status` in
    https://github.com/github/rest-api-description (read 2026-11); it refuses descriptions of more than 140 characters.
    """
    world = NoticeWorld(COMMITS)
    content = json.dumps({**REQUEST, "model_name": "m" * 63}).encode()
    incoming = world.drop(content, "requests/a.json", commit=SHA)
    world.launch(incoming)
    submitted = world.notice("submitted")
    world.deliver(submitted)
    world.complete(world.hint(world.train(world.record(incoming.run_id))))
    late = Notice(**{**vars(submitted), "id": f"{submitted.id}/2"})
    for notice in (world.notice("succeeded"), late):
        world.deliver(notice)
    bodies = [json.loads(post.body) for post in world.receivers.posts]
    assert {*COMMIT_STATES.values()} < {"error", "failure", "pending", "success"}
    assert [body["state"] for body in bodies] == ["pending", "success", "success"]
    assert {post.url for post in world.receivers.posts} == {
        f"https://api.github.com/repos/o/n/statuses/{SHA}"
    }
    for body in bodies:
        assert set(body) == {"state", "description", "context", "target_url"}
        assert len(body["description"]) <= 140
        assert body["context"] == f"trainmaster/{'m' * 63}"


def test_a_run_without_a_commit_of_git_gets_no_status() -> None:
    world = NoticeWorld(COMMITS)
    incoming = world.drop(json.dumps(REQUEST).encode(), "requests/a.json", commit="../../admin")
    world.launch(incoming)
    world.deliver(world.notice("submitted"))
    assert world.receivers.posts == []
    assert world.state_of("commits") == ("skipped", 1, "there is no run with a commit")


def test_a_test_notice_goes_only_to_the_receiver_that_it_names() -> None:
    world = NoticeWorld(OPS, {**SLACK, "when": {"states": ["failed"]}})
    world.deliver(receiver_test("slack", "1", world.clock.now()))
    world.deliver(receiver_test("unknown", "1", world.clock.now()))
    (post,) = world.receivers.posts
    assert post.url == HOOK
    assert json.loads(post.body)["text"] == "a test notice for slack · `trainmaster notices ls`"


def test_words_of_a_run_make_no_link_and_call_nobody_in_slack() -> None:
    """https://docs.slack.dev/messaging/formatting-message-text: `&`, `<` and `>` are escaped, and nothing else."""
    world = NoticeWorld(SLACK)
    data = {"window": "day", "reason": "a<b & <!channel>\n<https://evil.test|here>", "run_id": "r"}
    notice = Notice(
        id="caps/x", type="trainmaster.cap.reached.v1", subject="x", time=world.clock.now(), data=data
    )
    world.deliver(notice)
    (post,) = world.receivers.posts
    body = json.loads(post.body)
    assert body["text"] == (
        "the cap day is reached: a&lt;b &amp; &lt;!channel&gt; &lt;https://evil.test|here&gt; · `trainmaster why r`"
    )
    assert body["unfurl_links"] is False


def test_whatever_a_notice_holds_its_line_fits_a_label_and_a_message_of_slack() -> None:
    world, long = NoticeWorld(SLACK), "<&>\N{SNOWMAN}\n" * 10_000
    data = dict.fromkeys(("model_name", "run_id", "reason", "window", "rule_id", "team"), long)
    for kind in ("run.failed", "champion.promoted", "rule.quarantined", "cap.reached"):
        at = world.clock.now()
        world.deliver(Notice(id=kind, type=f"trainmaster.{kind}.v1", subject=long, time=at, data=data))
    assert len(world.receivers.posts) == 4
    assert max(len(json.loads(post.body)["text"]) for post in world.receivers.posts) <= 4000
    assert max(len(each["message"]) for each in world.deliveries()) <= 1024


def test_after_a_crash_at_any_call_every_receiver_has_it_and_the_record_says_so() -> None:
    calls = Boundary()
    world = NoticeWorld(OPS, SLACK, MAIL)
    run(world, "a", 0.7)
    world.deliver(world.notice("succeeded"), calls)
    assert 3 <= len(calls.calls) <= 4
    for number in range(len(calls.calls)):
        for after in (False, True):
            world = NoticeWorld(OPS, SLACK, MAIL)
            run(world, "a", 0.7)
            notice = world.notice("succeeded")
            with pytest.raises(Killed):
                world.deliver(notice, Boundary(die_at=number, die_after_the_call=after))
            world.deliver(notice)
            (document,) = world.deliveries()
            assert {each["state"] for each in document["receivers"].values()} == {"delivered"}
            assert {post.url for post in world.receivers.posts} == {OPS["webhook"]["url"], HOOK}


def test_two_deliveries_of_one_event_at_once_keep_what_the_other_has_finished() -> None:
    world = NoticeWorld(OPS, SLACK)
    run(world, "a", 0.7)
    notice = world.notice("succeeded")
    world.receivers.answers = {"ops.test": [500, 200]}
    overtaken = At("write notices", before=only_at(1, lambda: world.deliver(notice)))
    with pytest.raises(ReceiversLeft):
        world.deliver(notice, overtaken)
    assert world.state_of("ops")[0] == "delivered"


def test_receivers_that_never_answer_well_change_nothing_of_a_run() -> None:
    """Neither what a run does nor its order: the receivers have a separate subscription."""
    traces = []
    for receivers in ((), (OPS, SLACK)):
        world, boundary = NoticeWorld(*receivers), Boundary()
        world.receivers.answers = {"ops.test": [500], "hooks.slack.test": [302]}
        incoming = world.drop(json.dumps(REQUEST).encode(), "requests/a.json")
        world.launch(incoming, boundary)
        assert not any(map(world.try_to_deliver, world.notices.published))  # none is of an end
        world.complete(world.hint(world.train(world.record(incoming.run_id))), boundary)
        failures = [world.try_to_deliver(notice) for notice in world.notices.published]
        assert any(failures) is bool(receivers)
        traces.append((boundary.calls, [notice.id for notice in world.notices.published], world.active()))
    assert traces[0] == traces[1]


@pytest.mark.parametrize(
    "event",
    [
        b"junk",
        b"[]",
        b'{"id": "a", "type": "other.v1"}',
        b'{"id": "", "type": "trainmaster.run.failed.v1"}',
        json.dumps({"id": "a\nb", "type": "trainmaster.run.failed.v1"}).encode(),
        json.dumps({"id": "a" * 400, "type": "trainmaster.run.failed.v1"}).encode(),
    ],
)
def test_what_is_no_notice_is_refused_for_good(event: bytes) -> None:
    world = NoticeWorld(OPS)
    message = {"message": {"messageId": "1", "data": base64.b64encode(event).decode()}}
    with pytest.raises(EventMalformed):
        list(send_notice(world.services(), world.receivers, pubsub_message(world.envelope(message))))
    assert world.receivers.posts == []


@pytest.mark.parametrize(
    "data", [{}, {"run_id": 7}, {"run_id": "../x"}, {"champion": 1, "error": "x", "team": 3}]
)
def test_a_notice_with_odd_data_is_sent_as_far_as_it_goes(data: Mapping[str, object]) -> None:
    world = NoticeWorld(OPS)
    at = world.clock.now()
    world.deliver(Notice(id="x/failed", type="trainmaster.run.failed.v1", subject="x", time=at, data=data))
    assert world.state_of("ops") == ("delivered", 1, None)
