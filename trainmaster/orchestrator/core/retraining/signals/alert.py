"""Alerts: an incident of Cloud Monitoring, or an anomaly that Vertex AI Model Monitoring logged.

Sources: https://cloud.google.com/monitoring/support/notification-options (the schema of webhooks, version 1.2,
which Pub/Sub channels send too) and https://cloud.google.com/vertex-ai/docs/model-monitoring/using-model-monitoring
(its example of a log entry). Not verified: entries of Model Monitoring v2, for no example of one was found.
"""

from collections.abc import Mapping

from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.documents.unvalidated import mapping_at
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import PubsubMessage
from trainmaster.orchestrator.core.requests.arrival import Ignored
from trainmaster.orchestrator.core.retraining.rules.condition import ConditionKind
from trainmaster.orchestrator.core.retraining.signals.signal import (
    Signal,
    document_of,
    one_line,
    texts,
)

OPEN, CLOSED = "open", "closed"
ANOMALY_LOG = "model_monitoring_anomaly"
ANOMALY_TYPE = "ModelMonitoringAnomaliesLogEntry"
MODEL_LABELS = (
    "model",
    "model_name",
    "model_id",
    "model_user_id",
    "deployed_model_id",
    "model_deployment_monitoring_job",
    "endpoint_id",
)
"""Labels of metrics, resources and policies under which an alert may name a model or where it is served."""


def alert_in(message: PubsubMessage) -> Signal | Ignored:
    """The alert in the message.

    Raises:
        EventMalformed: the message is neither an incident nor a log entry.
    """
    document = document_of(message, "an alert")
    if "incident" in document:
        return _incident(message, mapping_at(document, "incident"))
    if "logName" in document:
        return _log_entry(message, document)
    keys = listed(sorted(map(one_line, document)), most=10) or "nothing"
    raise EventMalformed(
        f"message {message.message_id!r} is no alert: it has {keys}; "
        "an incident of Cloud Monitoring has `incident`, a log entry `logName`"
    )


def _incident(message: PubsubMessage, incident: Mapping[str, object]) -> Signal | Ignored:
    incident_id, state = incident.get("incident_id"), incident.get("state")
    if not isinstance(incident_id, str) or not incident_id:
        raise EventMalformed(f"message {message.message_id!r} holds an incident without incident_id")
    if state == CLOSED:
        return Ignored(reason=f"incident {incident_id!r} closed; only one that opens fires rules")
    if state != OPEN:
        raise EventMalformed(f"incident {incident_id!r} is {state!r}; {OPEN} or {CLOSED} is wanted")
    policy = one_line(str(incident.get("policy_name") or ""))
    labels = [
        mapping_at(incident, "policy_user_labels"),
        mapping_at(incident, "resource", "labels"),
        mapping_at(incident, "metric", "labels"),
        mapping_at(incident, "metadata", "user_labels"),
        mapping_at(incident, "metadata", "system_labels"),
    ]
    return _alert(
        message,
        incident_id=incident_id,
        policy=policy,
        summary=str(incident.get("summary") or incident.get("condition_name") or ""),
        models=texts(each.get(label) for each in labels for label in MODEL_LABELS),
    )


def _log_entry(message: PubsubMessage, entry: Mapping[str, object]) -> Signal | Ignored:
    payload = mapping_at(entry, "jsonPayload")
    log_name = str(entry["logName"])
    if not log_name.endswith(ANOMALY_LOG) and not str(payload.get("@type", "")).endswith(ANOMALY_TYPE):
        return Ignored(reason=f"a log entry of {log_name!r}, not of Model Monitoring's {ANOMALY_LOG}")
    insert_id, objective = entry.get("insertId"), payload.get("anomalyObjective")
    if not isinstance(insert_id, str) or not isinstance(objective, str):
        raise EventMalformed(
            f"message {message.message_id!r} is an anomaly without insertId or anomalyObjective"
        )
    labels = mapping_at(entry, "resource", "labels")
    named = [payload.get(key) for key in ("deployedModelId", "model", "modelDeploymentMonitoringJob")]
    return _alert(
        message,
        incident_id=insert_id,
        policy=one_line(objective),
        summary=f"{objective}: {_features(payload)}",
        models=texts([*named, *(labels.get(label) for label in MODEL_LABELS)]),
    )


def _features(payload: Mapping[str, object]) -> str:
    anomalies = payload.get("featureAnomalies")
    features = [mapping_at(each) for each in anomalies] if isinstance(anomalies, list) else []
    lines = (
        f"{each.get('featureDisplayName')} {each.get('deviation')} above {each.get('threshold')}"
        for each in features
    )
    return ", ".join(lines) or f"{payload.get('totalAnomaliesCount')} anomalies"


def _alert(
    message: PubsubMessage, *, incident_id: str, policy: str, summary: str, models: tuple[str, ...]
) -> Signal:
    values = {
        "alert.policy": policy,
        "alert.incident_id": one_line(incident_id),
        "alert.summary": one_line(summary),
    }
    return Signal(
        kind=ConditionKind.ALERT,
        id=f"alert/{one_line(incident_id)}",
        at=message.publish_time,
        facts={"policy": policy, "models": "\n".join(models)},
        values={name: text for name, text in values.items() if text},
    )
