"""Compares many uploads with their records and jobs: each must have exactly one of both."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from google.cloud.aiplatform_v1.types import CustomJob

from tests.e2e.project import ENDED, ROOT, Project

STUB = ROOT / "tests" / "e2e" / "images" / "stub"
RUN_LABEL = "trainmaster_run_id"


@dataclass(frozen=True, kw_only=True)
class Upload:
    """One object as it was written, and the ends that its run may have."""

    name: str
    generation: int
    ends: tuple[str, ...] = ("succeeded",)


@dataclass(frozen=True, kw_only=True)
class Reckoning:
    """Every broken guarantee, by the name of the upload, run or job. All empty if each holds."""

    lost: tuple[str, ...]
    recorded_twice: tuple[str, ...]
    recorded_unasked: tuple[str, ...]
    unfinished: tuple[str, ...]
    ended_otherwise: tuple[str, ...]
    without_job: tuple[str, ...]
    two_jobs: tuple[str, ...]
    job_of_nobody: tuple[str, ...]

    @property
    def kept(self) -> bool:
        return not any(getattr(self, field.name) for field in fields(self))

    def __str__(self) -> str:
        found = {field.name.replace("_", " "): getattr(self, field.name) for field in fields(self)}
        told = [f"{what}: {len(names)} ({', '.join(names[:5])})" for what, names in found.items() if names]
        return "; ".join(told) or "every upload has one record, every run one job"


def reckoned(
    uploads: Sequence[Upload], records: Iterable[Mapping[str, Any]], jobs: Sequence[tuple[str, str]]
) -> Reckoning:
    """Uploads against records, records against jobs; a job is its name and the run that its label names."""
    asked = {(upload.name, upload.generation): upload for upload in uploads}
    found: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for record in records:
        source = record["source"]
        found.setdefault((source["object_name"], source["generation"]), []).append(record)
    runs = {record["run_id"]: record for each in found.values() for record in each}
    given_up = {each["job"] for record in runs.values() for each in record["submission"]["abandoned_jobs"]}
    counted = Counter(run_id for name, run_id in jobs if name not in given_up)
    accepted = [run_id for run_id, record in runs.items() if record["state"] != "rejected"]
    return Reckoning(
        lost=tuple(upload.name for key, upload in asked.items() if key not in found),
        recorded_twice=tuple(name for (name, _), each in found.items() if len(each) > 1),
        recorded_unasked=tuple(name for name, generation in found if (name, generation) not in asked),
        unfinished=tuple(run_id for run_id, record in runs.items() if record["state"] not in ENDED),
        ended_otherwise=tuple(
            f"{record['run_id']} {record['state']}"
            for key, each in found.items()
            for record in each
            if key in asked and record["state"] in ENDED and record["state"] not in asked[key].ends
        ),
        without_job=tuple(run_id for run_id in accepted if counted[run_id] == 0),
        two_jobs=tuple(run_id for run_id, count in counted.items() if count > 1),
        job_of_nobody=tuple(name for name, run_id in jobs if run_id not in accepted),
    )


def reckoning(project: Project, uploads: Sequence[Upload]) -> Reckoning:
    """The same from the ledger's files and the JobService's list."""
    return reckoned(uploads, project.records().values(), labelled_jobs(project))


def labelled_jobs(project: Project) -> list[tuple[str, str]]:
    """Every custom job: its name, and the run that its label names."""
    return [(job.name, job.labels.get(RUN_LABEL, "")) for job in custom_jobs(project)]


def custom_jobs(project: Project) -> list[CustomJob]:
    parent = f"projects/{project.id}/locations/{project.region}"
    return list(project.vertex.list_custom_jobs(request={"parent": parent, "page_size": 100}))


def count_files(project: Project, folder: str) -> int:
    """How many objects of the ledger lie in a folder."""
    path = project.folder(project.ledger) / folder
    return sum(1 for _ in path.iterdir()) if path.exists() else 0


def stub_uri(project_id: str) -> str:
    return f"us-central1-docker.pkg.dev/{project_id}/trainmaster/stub"


def stub_request(project_id: str, *args: str, **more: object) -> str:
    """A request for the stub, as JSON."""
    document: dict[str, object] = {
        "model_name": "stub",
        "image": f"{stub_uri(project_id)}:1",
        "args": list(args),
        "cluster": {"chief": {"machine": "n1-standard-4"}},
        **more,
    }
    return json.dumps(document)
