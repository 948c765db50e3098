"""The parts of `trainmaster doctor`: what it expects, what it asks, and what it makes of the answers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from google.cloud.logging import Client as LoggingClient
from google.cloud.logging import Resource
from google.pubsub_v1 import SubscriberClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.core.parsed import parse_request
from tests.core.shipped import NAMES, REQUEST_RULES
from tests.judges.judged import Judged
from trainmaster.cli.stack.product import read_topology
from trainmaster.client.clients import log_reader
from trainmaster.deploy.doctor.access import account_findings
from trainmaster.deploy.doctor.deployment import ExaminedDeployment, GrantTarget, deployment_of
from trainmaster.deploy.doctor.finding import FindingVerdict, failed_finding
from trainmaster.deploy.doctor.giving_up import giving_up_finding
from trainmaster.deploy.doctor.hops import entry_findings, request_findings
from trainmaster.deploy.doctor.probe import Probe, own_request
from trainmaster.deploy.doctor.questions import Questions
from trainmaster.deploy.doctor.repair import bind
from trainmaster.deploy.doctor.sink import sink_findings
from trainmaster.deploy.doctor.witness import ProbeSubscription
from trainmaster.orchestrator.core.requests.request import Request as SoundRequest
from trainstack import logging
from trainstack.http import in_thread, serving
from trainstack.json_bodies import google_error
from trainstack.project import project_number
from trainstack.stack.access import grants_of

PROJECT, REGION = "p-one", "us-central1"
DEPLOY = Path(__file__).resolve().parents[2] / "trainmaster" / "deploy"
MEMBER = f"serviceAccount:tm-on-tick@{PROJECT}.iam.gserviceaccount.com"
SUBSCRIPTION = f"projects/{PROJECT}/subscriptions/eventarc-us-central1-on-tick-sub-1"


@pytest.fixture(scope="module")
def deployment() -> ExaminedDeployment:
    return deployment_of(project=PROJECT, region=REGION, topology=DEPLOY / "topology.yaml")


def test_what_is_expected_is_what_the_local_stack_grants(deployment: ExaminedDeployment) -> None:
    """Two readers of one table, which do not import each other."""
    topology = read_topology(DEPLOY / "topology.yaml", project=PROJECT, region=REGION)
    grants = grants_of(topology, DEPLOY / "permissions.yaml")
    number = project_number(PROJECT)
    expected = list(deployment.expected_grants(project_number=number, subscriptions=(SUBSCRIPTION,)))
    assert len(expected) > 50
    for each in expected:
        resource, folder = each.thing.resource, ""
        if each.thing.kind == "folder":
            bucket, folder = each.thing.parts
            resource = f"projects/_/buckets/{bucket}"
        bindings = grants.policy(resource, folder)["bindings"]
        assert isinstance(bindings, list)
        members = [set(found["members"]) for found in bindings if found["role"] == each.role]
        assert members, each
        assert each.member in members[0]
        assert grants.permitted(each.member, each.permissions, resource, folder) == [*each.permissions]
    assert {each.thing.kind for each in expected} == {
        "bucket", "folder", "topic", "subscription", "account", "function", "project",
    }  # fmt: skip


def test_the_doctors_own_request_is_one_that_the_shipped_policy_allows() -> None:
    ours = deployment_of(project=NAMES["project"], region=NAMES["region"], topology=DEPLOY / "topology.yaml")
    assert isinstance(
        parse_request(own_request(ours), as_json=True, request_rules=REQUEST_RULES), SoundRequest
    )


@pytest.mark.parametrize(
    ("kind", "name", "command"),
    [
        ("bucket", "b", "gcloud storage buckets add-iam-policy-binding gs://b"),
        ("topic", "t", f"gcloud pubsub topics add-iam-policy-binding t --project {PROJECT}"),
        ("subscription", "s", f"gcloud pubsub subscriptions add-iam-policy-binding s --project {PROJECT}"),
        ("account", "a@b", f"gcloud iam service-accounts add-iam-policy-binding a@b --project {PROJECT}"),
        (
            "function",
            "f",
            f"gcloud run services add-iam-policy-binding f --region {REGION} --project {PROJECT}",
        ),
        ("project", PROJECT, f"gcloud projects add-iam-policy-binding {PROJECT}"),
    ],
)
def test_every_kind_of_thing_has_its_command(
    deployment: ExaminedDeployment, kind: str, name: str, command: str
) -> None:
    thing = GrantTarget(kind=kind, name=name, resource="r")
    assert bind(deployment, thing, MEMBER, "roles/x.y") == f"{command} --member={MEMBER} --role=roles/x.y"


def test_a_finding_is_printed_on_lines_of_its_own_whatever_a_service_says() -> None:
    text = str(failed_finding("a\x1b[31m", "b\nok       forged: line", "c\rd", "e"))
    assert text.splitlines() == [
        "FAILED   a [31m: b ok       forged: line", "           c d", "           e",
    ]  # fmt: skip


def test_a_subscription_without_dead_letters_is_reported_with_one_command_and_a_missing_one_with_another(
    deployment: ExaminedDeployment,
) -> None:
    """Terraform tells a subscription where to give up once, when its trigger is made."""
    dead_letters = deployment.topic("dead_letters").resource
    topics = {
        f"projects/{PROJECT}/subscriptions/eventarc-{REGION}-{name}-sub-1": dead_letters
        for name, function in deployment.topology["functions"].items()
        if "dead_letter" in function
    }
    assert giving_up_finding(deployment, topics).verdict is FindingVerdict.OK
    on_alert, on_notice = (
        f"projects/{PROJECT}/subscriptions/eventarc-{REGION}-{name}-sub-1"
        for name in ("on-alert", "on-notice")
    )
    lost = giving_up_finding(deployment, {**topics, on_alert: ""})
    command = f"gcloud pubsub subscriptions update {on_alert} --dead-letter-topic={dead_letters}"
    assert lost.repairs == (f"{command} --max-delivery-attempts=50",)
    del topics[on_notice]
    gone = giving_up_finding(deployment, {**topics, on_alert: "projects/p/topics/other"})
    assert "those of on-alert, on-notice are dropped" in gone.message
    assert [repair.partition(" ")[0] for repair in gone.repairs] == ["gcloud", "trainmaster"]


ASKED = ("cloudresourcemanager.v1", "iam.v1", "iamcredentials.v1", "pubsub.v1", "run.v2", "storage.v1")
"""The APIs that Questions asks."""


class Cloud:
    """A project of one account, whose answers a test sets. The account's token is `t`, where it has one."""

    def __init__(self) -> None:
        self.held: list[str] | int = []
        self.policy: dict[str, object] | int = {}
        self.has_token = True
        self.tokens_seen: set[str] = set()

    async def answer(self, request: Request) -> JSONResponse:
        path = request.url.path
        if path.endswith(":generateAccessToken"):
            return (
                JSONResponse({"accessToken": "t"})
                if self.has_token
                else google_error(403, "no", status="PERMISSION_DENIED")
            )
        if path.endswith((":testIamPermissions", "/testPermissions")):
            self.tokens_seen.add(request.headers.get("authorization", ""))
            found: object = {"permissions": self.held} if isinstance(self.held, list) else self.held
        else:
            found = self.policy
        if isinstance(found, int):
            return google_error(found, "refused by the test", status="PERMISSION_DENIED")
        return JSONResponse(found)


@pytest.fixture(scope="module")
def run() -> Callable[[Cloud], AbstractContextManager[Questions]]:
    @contextmanager
    def asking(cloud: Cloud) -> Iterator[Questions]:
        app = Judged(Starlette(routes=[Route("/{path:path}", cloud.answer, methods=["GET", "POST"])]), *ASKED)
        with in_thread(lambda: serving(app)) as url:
            questions = Questions(project=PROJECT, iam=url, storage=url)
            try:
                yield questions
            finally:
                questions.close()
        assert not app.faults, app.faults

    return asking


Asking = Callable[[Cloud], AbstractContextManager[Questions]]


def finding_of_tick(
    deployment: ExaminedDeployment, questions: Questions, kind: str
) -> tuple[FindingVerdict, str]:
    expected = [
        each
        for each in deployment.expected_grants(project_number="1", subscriptions=())
        if each.account == "on-tick" and each.thing.kind == kind
    ]
    (finding,) = account_findings(deployment, questions, expected)
    return finding.verdict, str(finding)


PUBLISHER, ADD = "roles/pubsub.publisher", "gcloud pubsub topics add-iam-policy-binding trainmaster-notices"
BOUND = {"role": PUBLISHER, "members": [MEMBER]}
OTHER_BINDINGS: tuple[dict[str, object], ...] = (
    {**BOUND, "condition": {"expression": "false"}},
    {**BOUND, "role": "roles/pubsub.viewer"},
    {"role": PUBLISHER, "members": ["user:a@b"]},
    {"role": PUBLISHER},
)
OK, FAILED, UNKNOWN = FindingVerdict.OK, FindingVerdict.FAILED, FindingVerdict.UNKNOWN


@pytest.mark.parametrize(
    ("held", "has_token", "policy", "kind", "verdict", "said"),
    [
        (["pubsub.topics.publish"], True, {}, "topic", OK, ""),
        (404, True, {}, "bucket", FAILED, f"there is no bucket {PROJECT}-ledger"),
        (400, True, {"bindings": [BOUND]}, "topic", OK, ""),
        (400, False, {"bindings": [BOUND]}, "topic", OK, "judged by its bindings only"),
        *(([], False, {"bindings": [other]}, "topic", FAILED, ADD) for other in OTHER_BINDINGS),
        ([], False, 403, "topic", UNKNOWN, "refused by the test"),
    ],
)
def test_permissions_are_tested_as_the_account_or_else_judged_by_bindings_without_conditions(
    deployment: ExaminedDeployment,
    run: Asking,
    held: list[str] | int,
    has_token: bool,
    policy: dict[str, object] | int,
    kind: str,
    verdict: FindingVerdict,
    said: str,
) -> None:
    cloud = Cloud()
    cloud.held, cloud.has_token, cloud.policy = held, has_token, policy
    with run(cloud) as questions:
        found, text = finding_of_tick(deployment, questions, kind)
    assert (found, said in text) == (verdict, True), text
    assert cloud.tokens_seen == ({"Bearer t"} if has_token else set())
    assert ("add-iam-policy-binding" in text) == (said == ADD)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoggingClient]:
    with logging.serve(tmp_path_factory.mktemp("logging")) as url:
        client = log_reader(project=PROJECT, logging_host=url)
        yield client
        client.close()


def test_a_changed_sink_has_a_command_for_each_difference_and_its_writer_one_for_the_missing_grant(
    deployment: ExaminedDeployment, logs: LoggingClient, run: Asking
) -> None:
    name = deployment.sink_name
    logs.sinks_api.sink_create(
        f"projects/{PROJECT}",
        name,
        "severity>=ERROR",
        f"pubsub.googleapis.com/projects/{PROJECT}/topics/another",
        unique_writer_identity=True,
    )
    with run(Cloud()) as questions:
        sink, writer = map(str, sink_findings(deployment, logs, questions))
    update = f"gcloud logging sinks update {name} --project {PROJECT}"
    assert f'{update} --log-filter="$(cat {DEPLOY / "log_sink.filter"})"' in sink
    assert f"{update} pubsub.googleapis.com/projects/{PROJECT}/topics/{name}" in sink
    assert f"gcloud pubsub topics add-iam-policy-binding {name} --project {PROJECT} --member=" in writer
    assert "--role=roles/pubsub.publisher" in writer


NOBODY = ProbeSubscription(SubscriberClient.__new__(SubscriberClient), "none", "not allowed by the test")
"""One that could not watch, and so asks its client for nothing."""


def test_without_a_probe_subscription_the_hop_is_unknown_and_a_missing_answer_is_a_failure(
    deployment: ExaminedDeployment, logs: LoggingClient
) -> None:
    found = entry_findings(deployment, Probe(), logs, NOBODY)
    assert [each.verdict for each in found] == [
        FindingVerdict.UNKNOWN,
        FindingVerdict.UNKNOWN,
        FindingVerdict.FAILED,
    ]
    assert "not allowed by the test" in str(found[1])


def test_a_probe_that_could_not_be_sent_names_the_role(
    deployment: ExaminedDeployment, logs: LoggingClient
) -> None:
    probe = Probe(cannot="denied")
    (entry,) = entry_findings(deployment, probe, logs, NOBODY)
    (request,) = request_findings(deployment, probe, logs)
    assert "roles/logging.logWriter" in str(entry)
    assert "roles/pubsub.publisher on topic trainmaster-requests" in str(request)


def test_a_topic_of_no_team_is_healthy_if_it_refuses_requests_for_that_and_nothing_else(
    deployment: ExaminedDeployment, logs: LoggingClient
) -> None:
    no_team = {"path": "$", "problem": "it belongs to none of the policy's teams", "found": "'a message'"}
    other = {"path": "$.image", "problem": "the policy does not allow it"}
    for faults, verdict in (([no_team], FindingVerdict.OK), ([no_team, other], FindingVerdict.FAILED)):
        answer = {"latency_s": 1.0, "verdict": {"accepted": False, "faults": faults}}
        assert request_findings(deployment, Probe(answer=answer), logs)[-1].verdict is verdict


def test_functions_of_before_self_tests_are_known_by_what_they_say(
    deployment: ExaminedDeployment, logs: LoggingClient
) -> None:
    line = {"message": "the job was submitted: x", "entry_point": "on_request_published", "event_id": "71"}
    log = logs.logger("run.googleapis.com%2Fstdout", resource=Resource(type="global", labels={}))
    log.log_struct(line, timestamp=datetime.now(UTC))
    found = request_findings(deployment, Probe(message_id="71"), logs)
    assert [each.verdict for each in found] == [FindingVerdict.OK, FindingVerdict.FAILED]
    assert f"trainmaster deploy --project {PROJECT} --region {REGION}" in str(found[1])
