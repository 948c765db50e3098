"""Checks that the log sink is as deployed, and that its writer may publish to its topic."""

import shlex
from collections.abc import Mapping
from typing import Any

from google.api_core.exceptions import NotFound
from google.cloud.logging import Client as LoggingClient

from trainmaster.deploy.doctor.deployment import ExaminedDeployment
from trainmaster.deploy.doctor.finding import DoctorFinding, failed_finding, ok
from trainmaster.deploy.doctor.questions import Questions
from trainmaster.deploy.doctor.repair import bind, redeploy

PUBLISHER = "roles/pubsub.publisher"


def sink_findings(
    deployment: ExaminedDeployment, logs: LoggingClient, questions: Questions
) -> list[DoctorFinding]:
    """Findings on the sink and, if it exists, on its writer's grant.

    Raises:
        GoogleAPICallError, AskRefusedError: the sink or the topic's policy cannot be read.
    """
    name = deployment.sink_name
    check = f"sink {name}"
    try:
        sink = logs.sinks_api.sink_get(f"projects/{deployment.project}/sinks/{name}")
    except NotFound:
        message = "the sink does not exist, so no end of a job is reported"
        return [failed_finding(check, message, redeploy(deployment))]
    finding = ok(check, "as it was deployed")
    if wrong := _differences(deployment, sink):
        finding = failed_finding(check, "; ".join(wrong), *wrong.values())
    return [finding, _writer_finding(deployment, str(sink.get("writerIdentity", "")), questions)]


def _differences(deployment: ExaminedDeployment, sink: Mapping[str, Any]) -> dict[str, str]:
    """Each difference from the deployment, with the command that repairs it."""
    update = f"gcloud logging sinks update {deployment.sink_name} --project {deployment.project}"
    wrong: dict[str, str] = {}
    if str(sink.get("filter", "")).split() != deployment.sink_filter_file.read_text().split():
        file = shlex.quote(str(deployment.sink_filter_file))
        wrong["its filter differs from the deployment's"] = f'{update} --log-filter="$(cat {file})"'
    wanted = f"pubsub.googleapis.com/{deployment.topic('job_logs').resource}"
    if sink.get("destination") != wanted:
        wrong[f"it sends to {sink.get('destination')!r}, not to {wanted!r}"] = f"{update} {wanted}"
    if sink.get("disabled"):
        wrong["it is disabled"] = f"{update} --no-disabled"
    if excluded := [str(each.get("name")) for each in sink.get("exclusions", []) if not each.get("disabled")]:
        wrong[f"it drops the entries that {', '.join(excluded)} exclude"] = f"{update} --clear-exclusions"
    return wrong


def _writer_finding(deployment: ExaminedDeployment, writer: str, questions: Questions) -> DoctorFinding:
    check, topic = f"the sink's writer {writer}", deployment.topic("job_logs")
    if writer in questions.policy(topic).get(PUBLISHER, frozenset()):
        return ok(check, f"may publish on {topic.name}")
    message = f"{PUBLISHER} is not bound on topic {topic.name}: everything the sink forwards is dropped"
    return failed_finding(check, message, bind(deployment, topic, writer, PUBLISHER))
