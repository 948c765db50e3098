"""Vertex AI's names of locations and jobs, built and split here."""

import re
from enum import StrEnum

_JOB = re.compile(
    r"projects/[^/]+/locations/(?P<location>[^/]+)"
    r"/(?P<kind>customJobs|hyperparameterTuningJobs)/(?P<job_id>[^/]+)"
)


class JobKind(StrEnum):
    """Vertex AI's collections of jobs, as resource names spell them."""

    CUSTOM = "customJobs"
    TUNING = "hyperparameterTuningJobs"


def location_name(project: str, region: str) -> str:
    return f"projects/{project}/locations/{region}"


def context_name(project: str, region: str, name: str) -> str:
    """The full name of an experiment, or of a run of one, in the default metadata store."""
    return f"{location_name(project, region)}/metadataStores/default/contexts/{name}"


def job_name(project: str, region: str, kind: JobKind, job_id: str) -> str:
    return f"{location_name(project, region)}/{kind}/{job_id}"


def is_job_name(text: str, kind: JobKind) -> bool:
    """Whether the text is the full name of a job of this kind."""
    match = _JOB.fullmatch(text)
    return match is not None and match["kind"] == kind


def job_kind(name: str) -> JobKind:
    """The kind of the job with this full name.

    Raises:
        ValueError: it is not the name of a job.
    """
    return JobKind(_job(name)["kind"])


def job_region(name: str) -> str:
    """The region of the job with this full name.

    Raises:
        ValueError: it is not the name of a job.
    """
    return _job(name)["location"]


def _job(name: str) -> re.Match[str]:
    match = _JOB.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is not the name of a job")
    return match


def console_uri(name: str) -> str:
    """The job's page in the Google Cloud console, as google-cloud-aiplatform 1.x composes it (read 2026-11-23)."""
    where = f"locations/{job_region(name)}/training/{job_id(name)}"
    return f"https://console.cloud.google.com/agent-platform/{where}?project={name.split('/')[1]}"


def job_id(name: str) -> str:
    """The id of the job with this full name, as in its log entries.

    Raises:
        ValueError: it is not the name of a job.
    """
    return _job(name)["job_id"]


def location_region(name: str) -> str:
    """The region in `projects/PROJECT/locations/REGION`."""
    return name.rpartition("/")[2]


def same_job(one_name: str, other_name: str) -> bool:
    """Whether two names mean the same job. The service answers with the project number where we sent the project id."""
    one, other = _JOB.fullmatch(one_name), _JOB.fullmatch(other_name)
    return one is not None and other is not None and one.groups() == other.groups()
