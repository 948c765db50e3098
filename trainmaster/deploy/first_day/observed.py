"""What the services answer, as they answer it: the clients' messages would drop fields that they do not know."""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from google.api_core.exceptions import DeadlineExceeded, GoogleAPICallError

from trainmaster.client.logs.read import Selection
from trainmaster.orchestrator.core.job_names import location_name
from trainmaster.orchestrator.core.runs.record import RunRecord

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

Json = dict[str, Any]  # Any: JSON
TIMEOUT_S = 60.0
PAGE, PAGES_MAX = 500, 10
MESSAGES_MAX = 500
NOT_OURS = "google-no-such-project"
"""No user's project: their ids cannot contain `google`.

Source: https://cloud.google.com/resource-manager/docs/creating-managing-projects
"""
_OK = 200


def ask(clients: "Clients", verb: str, path: str, body: Json | None = None) -> Json:
    """The call to Vertex AI, with status and body of its answer, also of a refusal."""
    region = path.split("/")[3]
    host = clients.context.vertex_host or f"https://{region}-aiplatform.googleapis.com"
    session = vars(clients.jobs_of_region(region).transport)["_session"]  # it has no public name
    answer = session.request(verb, f"{host}/v1/{path}", json=body, timeout=TIMEOUT_S)
    return {
        "call": f"{verb} {path}",
        "sent": body,
        "status": answer.status_code,
        "body": _parsed(answer.text),
    }


def jobs_of(clients: "Clients", record: RunRecord) -> list[Json]:
    """The answer for each job of the run, first those without capacity, and last the jobs of its trials."""
    names = [each.job for each in record.submission.abandoned_jobs]
    names += [record.job.name] if record.job is not None else []
    jobs = [ask(clients, "GET", name) for name in names]
    trials = [
        trial for job in jobs if isinstance(job["body"], dict) for trial in job["body"].get("trials", ())
    ]
    return jobs + [ask(clients, "GET", str(trial["customJob"])) for trial in trials if trial.get("customJob")]


def entries_of(clients: "Clients", record: RunRecord, jobs: Sequence[Json]) -> list[Json]:
    """The log entries of these jobs, oldest first; at most PAGE times PAGES_MAX."""
    job_ids = [str(job["call"]).rpartition("/")[2] for job in jobs]
    query: Json = {
        "resourceNames": [f"projects/{clients.context.project}"],
        "filter": Selection().filter_of(job_ids, record.history[0].at),
        "orderBy": "timestamp asc",
        "pageSize": PAGE,
    }
    connection: Any = clients.logs._connection  # noqa: SLF001 - the client's own entries lack unknown fields
    found: list[Json] = []
    for _ in range(PAGES_MAX if job_ids else 0):
        page = connection.api_request(method="POST", path="/entries:list", data=query)
        found += page.get("entries", ())
        if not page.get("nextPageToken"):
            break
        query["pageToken"] = page["nextPageToken"]
    return found


def refusals(clients: "Clients", ended_job: str | None) -> dict[str, Json]:
    """The answers to calls that Vertex AI must refuse. A job that it makes all the same is cancelled at once."""
    here = f"{location_name(clients.context.project, clients.context.region)}/customJobs"
    elsewhere = f"{location_name(NOT_OURS, clients.context.region)}/customJobs"
    named = {"displayName": "first-day-refused"}
    answers = {
        "field_missing": ask(clients, "POST", here, named),
        "field_unknown": ask(clients, "POST", here, {**named, "noSuchField": 1}),
        "job_unknown": ask(clients, "GET", f"{here}/1"),
        "project_unknown": ask(clients, "GET", elsewhere),
    }
    for made in [each for each in answers.values() if each["sent"] and each["status"] == _OK]:
        ask(clients, "POST", f"{made['body']['name']}:cancel", {})
    if ended_job is not None:
        answers["cancel_of_ended"] = ask(clients, "POST", f"{ended_job}:cancel", {})
    return answers


@contextmanager
def listening(clients: "Clients", topics: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """A subscription on each topic until the block ends. If it cannot be deleted then, it expires after a day."""
    from google.protobuf.duration_pb2 import Duration
    from google.pubsub_v1.types import ExpirationPolicy, Subscription

    subscriber, made = clients.pubsub[0], dict[str, str]()
    own = f"projects/{clients.context.project}/subscriptions/trainmaster-first-day"
    try:
        for key, topic in topics.items():
            made[key] = f"{own}-{secrets.token_hex(6)}"
            wanted = Subscription(
                name=made[key],
                topic=topic,
                message_retention_duration=Duration(seconds=6 * 3600),  # shorter than the expiration must be
                expiration_policy=ExpirationPolicy(ttl=Duration(seconds=24 * 3600)),
            )
            subscriber.create_subscription(request=wanted, timeout=TIMEOUT_S)
        yield made
    finally:
        for name in made.values():
            with suppress(GoogleAPICallError):
                subscriber.delete_subscription(subscription=name, timeout=TIMEOUT_S)


def topic_of_trigger(clients: "Clients", function: str) -> str:
    """The topic of the function's trigger; Eventarc names its subscription after the function.

    Raises:
        LookupError: no subscription of the project has the function's name.
    """
    project = f"projects/{clients.context.project}"
    for each in clients.pubsub[0].list_subscriptions(project=project, timeout=TIMEOUT_S):
        if f"-{function}-" in each.name:
            return str(each.topic)
    raise LookupError(f"no subscription is named after {function}")


def messages_on(clients: "Clients", subscription: str) -> list[Json]:
    """The messages that the subscription has, at most about MESSAGES_MAX."""
    subscriber, found = clients.pubsub[0], list[Json]()
    while len(found) < MESSAGES_MAX:
        try:
            pulled = subscriber.pull(subscription=subscription, max_messages=100, timeout=4.0, retry=None)
        except DeadlineExceeded:
            break
        if not pulled.received_messages:
            break
        found += [_message_json(each.message) for each in pulled.received_messages]
        ack_ids = [each.ack_id for each in pulled.received_messages]
        subscriber.acknowledge(subscription=subscription, ack_ids=ack_ids, timeout=TIMEOUT_S)
    return found


def _message_json(message: Any) -> Json:  # Any: the client's messages are untyped
    return {
        "messageId": message.message_id,
        "publishTime": message.publish_time.isoformat(),
        "attributes": dict(message.attributes),
        "data": _parsed(message.data.decode("utf-8", "replace")),
    }


def _parsed(text: str) -> Any:  # Any: JSON
    try:
        return json.loads(text)
    except ValueError:
        return text
