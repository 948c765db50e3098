"""Follows a probe through the deployment, up to the first hop that failed."""

from collections.abc import Mapping
from typing import Any

from google.cloud.logging import Client as LoggingClient

from trainmaster.client.dead_letters.letter import CLOCKS_APART
from trainmaster.client.dead_letters.reasons import FunctionLine, Reasons
from trainmaster.deploy.doctor.deployment import ExaminedDeployment
from trainmaster.deploy.doctor.finding import DoctorFinding, failed_finding, ok, unknown
from trainmaster.deploy.doctor.probe import Probe
from trainmaster.deploy.doctor.repair import redeploy
from trainmaster.deploy.doctor.witness import ProbeSubscription
from trainmaster.orchestrator.core.events.self_test import MARK
from trainmaster.orchestrator.core.policy.teams import NO_TEAM_PROBLEM

WRITTEN = "a log entry is written"
PASSED = "the sink forwards it"
HANDLED = "on_job_log handles it"
PUBLISHED = "a request is published as a dry run"
TRIED = "on_request_published checks it"
ALLOWED = "the policy allows it"


def entry_findings(
    deployment: ExaminedDeployment, probe: Probe, logs: LoggingClient, witness: ProbeSubscription
) -> list[DoctorFinding]:
    """The hops of the log entry, up to the first that failed.

    Raises:
        GoogleAPICallError: the log or the topic cannot be read for the details.
    """
    if probe.cannot:
        repair = "you need roles/logging.logWriter on the project"
        return [failed_finding(WRITTEN, f"Cloud Logging rejects it: {probe.cannot}", repair)]
    if probe.answer is not None:
        message = f"{_seconds(probe.answer)} after it was written"
        return [ok(WRITTEN, probe.id), ok(PASSED, "to the topic"), ok(HANDLED, message)]
    listed = _is_listed(logs, probe)
    arrived = "" if witness.cannot else witness.message_of(probe.id)
    if arrived:
        line = _line_about(arrived, deployment, probe, logs)
        missing = _missing_line(deployment, HANDLED, f"{deployment.prefix}on-job-log", arrived, line)
        return [ok(WRITTEN, probe.id), ok(PASSED, f"as message {arrived}"), missing]
    if witness.cannot:
        message = f"no answer arrived, and the topic could not be watched: {witness.cannot}"
        return [
            _listing(probe, listed),
            unknown(PASSED, message),
            failed_finding(HANDLED, "no answer arrived"),
        ]
    repairs = (
        "see the sink and its writer above: without the writer's grant, everything is dropped silently",
        f"gcloud logging sinks describe {deployment.sink_name} --project {deployment.project}",
    )
    missed = failed_finding(PASSED, f"it did not reach topic {deployment.topic('job_logs').name}", *repairs)
    return [_listing(probe, listed), missed]


def request_findings(
    deployment: ExaminedDeployment, probe: Probe, logs: LoggingClient
) -> list[DoctorFinding]:
    """The hops of the dry-run request, up to the first that failed.

    Raises:
        GoogleAPICallError: the log cannot be read for the details.
    """
    topic = deployment.topic("requests").name
    if probe.cannot:
        repair = f"you need roles/pubsub.publisher on topic {topic}"
        return [failed_finding(PUBLISHED, probe.cannot, repair)]
    published = ok(PUBLISHED, f"message {probe.message_id} on {topic}")
    if probe.answer is None:
        line = _line_about(probe.message_id, deployment, probe, logs)
        function = f"{deployment.prefix}on-request-published"
        return [published, _missing_line(deployment, TRIED, function, probe.message_id, line)]
    tried = ok(TRIED, f"{_seconds(probe.answer)} after it was published")
    return [published, tried, _verdict(probe.answer["verdict"])]


def _verdict(verdict: Mapping[str, Any]) -> DoctorFinding:
    if verdict["accepted"]:
        submission = verdict["submission"]
        return ok(ALLOWED, f"it would be one of {submission['parent']}/{submission['kind']}")
    if [fault["problem"] for fault in verdict["faults"]] == [NO_TEAM_PROBLEM]:
        return ok(ALLOWED, "no: the policy gives the topic to no team, so requests on it are refused")
    faults = [
        f"{fault['path']}: {fault['problem']}" + (f"; found {fault['found']}" if "found" in fault else "")
        for fault in verdict["faults"]
    ]
    repair = "change functions/policy.yaml and deploy, or try a request of your own: --request FILE"
    return failed_finding(ALLOWED, " · ".join(faults), repair)


def _line_about(
    message_id: str, deployment: ExaminedDeployment, probe: Probe, logs: LoggingClient
) -> FunctionLine | None:
    since = probe.asked_at - CLOCKS_APART
    return Reasons(logs, deployment.project).outcomes([message_id], since).get(message_id)


def _missing_line(
    deployment: ExaminedDeployment, check: str, function: str, message_id: str, line: FunctionLine | None
) -> DoctorFinding:
    """Why a function did not answer a message that reached its topic."""
    where = f"--location {deployment.region} --project {deployment.project}"
    if line is None:
        return failed_finding(
            check,
            f"{function} did not report on message {message_id}: it did not receive it, was killed, or needs longer",
            f"gcloud eventarc triggers describe {function} {where}",
            f"gcloud functions logs read {function} --region {deployment.region} --project {deployment.project}",
            "or wait longer: --wait-s",
        )
    if line.error:
        return failed_finding(
            check, f"{function} fails: {line.text}", "docs/how-to/runbook.md has the fix for each error"
        )
    return failed_finding(
        check, f"{function} mistook it for something else: {line.text}", redeploy(deployment)
    )


def _is_listed(logs: LoggingClient, probe: Probe) -> bool:
    query = f'labels.{MARK}="{probe.id}" AND timestamp>="{(probe.asked_at - CLOCKS_APART).isoformat()}"'
    return any(True for _ in logs.list_entries(filter_=query, page_size=1))


def _listing(probe: Probe, listed: bool) -> DoctorFinding:
    if listed:
        return ok(WRITTEN, f"{probe.id}, and Cloud Logging returns it")
    message = f"Cloud Logging accepted {probe.id} but does not return it: it may be late, or dropped by an exclusion"
    return unknown(WRITTEN, message, f"gcloud logging read 'labels.{MARK}=\"{probe.id}\"'")


def _seconds(answer: Mapping[str, Any]) -> str:
    return f"{float(answer['latency_s']):.1f} s"
