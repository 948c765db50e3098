"""`trainmaster doctor`: tests every part of a deployment, and reports each that fails with its repair.

It trains nothing and starts no run: docs/how-to/deploy.md, section "Self-test".
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml
from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import GoogleAuthError
from google.cloud.logging import Client as LoggingClient
from google.cloud.storage import Client as StorageClient
from google.pubsub_v1 import PublisherClient, SubscriberClient

from trainmaster.client.clients import log_reader, pubsub_clients, storage_client
from trainmaster.client.context import Context, context_of_stack
from trainmaster.client.errors import NotFound
from trainmaster.client.records import read_json
from trainmaster.client.submission.source import read_file
from trainmaster.deploy.doctor.access import account_findings
from trainmaster.deploy.doctor.caller import caller_finding, refused_project
from trainmaster.deploy.doctor.deployment import ExaminedDeployment, GrantTarget, deployment_of
from trainmaster.deploy.doctor.finding import (
    DoctorFinding,
    FindingVerdict,
    failed_finding,
    ok,
    summary,
    unknown,
)
from trainmaster.deploy.doctor.giving_up import (
    dead_letter_topics,
    giving_up_finding,
    subscriptions_that_give_up,
)
from trainmaster.deploy.doctor.hops import entry_findings, request_findings
from trainmaster.deploy.doctor.probe import own_request, publish_request, wait_for_answers, write_entry
from trainmaster.deploy.doctor.questions import AskRefusedError, Questions
from trainmaster.deploy.doctor.repair import redeploy
from trainmaster.deploy.doctor.sink import sink_findings
from trainmaster.deploy.doctor.witness import witness
from trainmaster.deploy.names import ci_roles, receiver_settings
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES
from trainstack.find import environment_on


@dataclass(frozen=True, kw_only=True)
class _Visit:
    """One examination of a deployment, with the clients that it needs."""

    deployment: ExaminedDeployment
    target: Context
    questions: Questions
    logs: LoggingClient
    storage: StorageClient
    subscriber: SubscriberClient
    publisher: PublisherClient
    request: bytes
    wait_s: float

    def findings(self) -> Iterator[DoctorFinding]:
        """The findings, each as soon as its check is done."""
        project = self.deployment.project
        try:
            number = self.questions.project_number(project)
        except AskRefusedError as refused:
            yield refused_project(project, refused)
            return
        yield ok(f"project {project}", f"its number is {number}")
        ledger = self.target.ledger_bucket
        if self._is_missing(ledger):
            message = f"there is no bucket {ledger}, so nothing of this name is deployed in the project"
            yield failed_finding("the deployment", message, redeploy(self.deployment))
            return
        yield from _run_check("your permissions", lambda: [caller_finding(self.deployment, self.questions)])
        yield from _run_check("the sink", lambda: sink_findings(self.deployment, self.logs, self.questions))
        yield from _run_check("the path of events", self._probes)
        yield from _run_check("permissions", lambda: self._accounts(number))

    def _probes(self) -> list[DoctorFinding]:
        with witness(self.subscriber, self.deployment) as watching:
            entry = write_entry(self.logs, self.deployment.project)
            request = publish_request(self.publisher, self.deployment, self.request)
            wait_for_answers(self.storage, self.target.ledger_bucket, [entry, request], self.wait_s)
            return [
                *_run_check(
                    "the log entry", lambda: entry_findings(self.deployment, entry, self.logs, watching)
                ),
                *_run_check("the request", lambda: request_findings(self.deployment, request, self.logs)),
            ]

    def _is_missing(self, bucket: str) -> bool:
        """Whether it surely does not exist. A user who may not see it learns from the other checks which role is missing."""
        thing = GrantTarget(kind="bucket", name=bucket, resource=f"projects/_/buckets/{bucket}")
        try:
            self.questions.policy(thing)
        except (AskRefusedError, GoogleAuthError, OSError) as fault:
            return isinstance(fault, AskRefusedError) and fault.status == HTTPStatus.NOT_FOUND
        return False

    def _accounts(self, number: str) -> list[DoctorFinding]:
        topics = dead_letter_topics(self.deployment, self.subscriber)
        gives_up = subscriptions_that_give_up(self.deployment, topics)
        policy, unread = deployed_policy(self.storage, self.target.ledger_bucket, self.deployment)
        deployment = replace(self.deployment, secrets=secrets_of(policy) if self.deployment.builds else ())
        expected = [
            *deployment.expected_grants(project_number=number, subscriptions=gives_up, policy=policy),
            *deployment.expected_of_teams(teams_of(policy)),
            *deployment.expected_of_ci(ci_roles() if deployment.builds else (), teams_of(policy)),
        ]
        return [
            giving_up_finding(self.deployment, topics),
            *unread,
            *account_findings(self.deployment, self.questions, expected),
        ]


def examine(
    *,
    state: Path | None,
    project: str | None,
    region: str | None,
    name: str,
    topology: Path,
    request: Path | None,
    wait_s: float,
) -> int:
    """Examine the local stack on `state`, or the deployment of `project` and `region`, with `request` or a small one.

    Returns the exit status: 0 nothing failed, 1 something failed, 2 no deployment was named, or a file cannot be read.

    Raises:
        NoStack: no local stack runs on `state`.
        google.auth.exceptions.GoogleAuthError, requests.exceptions.RequestException: there are no credentials, or
            nothing answers.
    """
    try:
        environment, deployment = _begin(state, project, region, name, topology)
        document = read_file(str(request), MAX_REQUEST_BYTES) if request else own_request(deployment)
    except (OSError, ValueError, KeyError, yaml.YAMLError) as fault:
        print(fault, file=sys.stderr)
        return 2
    target = context_of_stack(environment)
    questions = Questions(
        project=target.project, iam=environment.get("IAM_EMULATOR_HOST"), storage=target.storage_host
    )
    findings: list[DoctorFinding] = []
    with (
        closing(questions),
        closing(log_reader(project=target.project, logging_host=target.logging_host)) as logs,
        closing(storage_client(target)) as storage,
        pubsub_clients(environment.get("PUBSUB_EMULATOR_HOST")) as (subscriber, publisher),
    ):
        visit = _Visit(
            deployment=deployment,
            target=target,
            questions=questions,
            logs=logs,
            storage=storage,
            subscriber=subscriber,
            publisher=publisher,
            request=document,
            wait_s=wait_s,
        )
        for finding in visit.findings():
            print(finding, flush=True)
            findings.append(finding)
    print(summary(findings))
    return 1 if any(finding.verdict is FindingVerdict.FAILED for finding in findings) else 0


def _begin(
    state: Path | None, project: str | None, region: str | None, name: str, topology: Path
) -> tuple[Mapping[str, str], ExaminedDeployment]:
    """The environment variables that point clients at the deployment, and the deployment's names.

    Raises:
        ValueError: no deployment is named; the message says what to do.
        OSError, yaml.YAMLError: the topology cannot be read.
        NoStack: no local stack runs on `state`.
    """
    local = environment_on(state) if state is not None else {}
    project = project or local.get("GOOGLE_CLOUD_PROJECT")
    region = region or local.get("TRAINMASTER_REGION")
    if not project or not region:
        raise ValueError(
            "Which deployment? --project ID and --region REGION, or --state DIR for a local stack."
        )
    deployment = deployment_of(
        project=project, region=region, name=name, topology=topology, builds=state is None
    )
    named = {str(key): str(value) for key, value in deployment.topology["environment"].items()}
    known = (
        {**local, **named} if name else {**named, **local}
    )  # the stack's own variables are of the one without a name
    return {**known, "GOOGLE_CLOUD_PROJECT": project}, deployment


def deployed_policy(
    storage: StorageClient, ledger_bucket: str, deployment: ExaminedDeployment
) -> tuple[Mapping[str, Any], list[DoctorFinding]]:
    """The document of the policy; empty where it is unknown, and why.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    try:
        document = read_json(storage, ledger_bucket, DEPLOYMENT_OBJECT)
    except NotFound as damaged:
        return {}, [_unknown(str(damaged), deployment)]
    if document is None:
        return {}, [_unknown(f"the ledger has no {DEPLOYMENT_OBJECT}", deployment)]
    policy = document.get("policy")
    return policy if isinstance(policy, dict) else {}, []


def teams_of(policy: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the policy's teams."""
    teams = policy.get("teams")
    return tuple(map(str, teams)) if isinstance(teams, dict) else ()


def secrets_of(policy: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids of the secrets of the policy's receivers of notices."""
    try:
        found = receiver_settings(policy).values()
    except (AttributeError, KeyError, TypeError):  # a policy of another version
        return ()
    return tuple(sorted({str(each["secret"]) for each in found if "secret" in each}))


def _unknown(why: str, deployment: ExaminedDeployment) -> DoctorFinding:
    return unknown("permissions of teams", why, redeploy(deployment))


def _run_check(check: str, make: Callable[[], list[DoctorFinding]]) -> list[DoctorFinding]:
    """The check's findings; an error becomes one unknown finding, so that the other checks still run."""
    try:
        return make()
    except (AskRefusedError, GoogleAPICallError, GoogleAuthError, OSError, UnicodeError) as fault:
        # `requests` raises OSErrors, and settings that are not UTF-8 a UnicodeError.
        return [unknown(check, f"could not be checked: {fault}")]
