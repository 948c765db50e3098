"""The services' answers as they give them: the clients' messages would drop fields that they do not know."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.logs.read import PAGE, Selection
from trainmaster.orchestrator.core.job_names import job_region, location_name
from trainmaster.orchestrator.core.runs.record import RunRecord

Json = dict[str, Any]  # Any: JSON
TIMEOUT_S = 60.0
NOT_OURS = "google-no-such-project"
"""No user's project: their ids cannot contain `google`.

Source: https://cloud.google.com/resource-manager/docs/creating-managing-projects
"""


def ask(clients: Clients, verb: str, path: str, body: Json | None = None) -> Json:
    """The call to Vertex AI, with status and body of its answer, also of a refusal."""
    region = path.split("/")[3]
    host = clients.context.vertex_host or f"https://{region}-aiplatform.googleapis.com"
    session = vars(clients.jobs_of_region(region).transport)["_session"]  # it has no public name
    answer = session.request(verb, f"{host}/v1/{path}", json=body, timeout=TIMEOUT_S)
    return {"call": f"{verb} {path}", "sent": body, "status": answer.status_code, "body": answer.json()}


def jobs_of(clients: Clients, record: RunRecord) -> dict[str, Json]:
    """The answer for each job of the run by name: first those without capacity, last the jobs of its trials."""
    names = [trial.job for trial in record.submission.abandoned_jobs]
    names += [record.job.name] if record.job is not None else []
    jobs = {name: ask(clients, "GET", name) for name in names}
    trials = [trial for job in jobs.values() for trial in job["body"].get("trials", ())]
    of_trials = [trial["customJob"] for trial in trials if trial.get("customJob")]
    return jobs | {name: ask(clients, "GET", name) for name in of_trials}


def entries_of(clients: Clients, job_ids: Collection[str], since: datetime) -> list[Json]:
    """The log entries of these jobs, at least one, oldest first; at most PAGE."""
    query = {
        "resourceNames": [f"projects/{clients.context.project}"],
        "filter": Selection().filter_of(job_ids, since),
        "orderBy": "timestamp asc",
        "pageSize": PAGE,
    }
    connection: Any = clients.logs._connection  # noqa: SLF001 - the client's own entries lack unknown fields
    return list(connection.api_request(method="POST", path="/entries:list", data=query).get("entries", ()))


def refusals(clients: Clients, ended_job: str) -> dict[str, Json]:
    """The answers to calls that Vertex AI must refuse. Nothing could run of the job that lacks its spec."""
    here = location_name(clients.context.project, job_region(ended_job))
    elsewhere = location_name(NOT_OURS, job_region(ended_job))
    return {
        "field_missing": ask(clients, "POST", f"{here}/customJobs", {"displayName": "first-day-refused"}),
        "job_unknown": ask(clients, "GET", f"{here}/customJobs/1"),
        "project_unknown": ask(clients, "GET", f"{elsewhere}/customJobs"),
        "cancel_of_ended": ask(clients, "POST", f"{ended_job}:cancel", {}),
    }
