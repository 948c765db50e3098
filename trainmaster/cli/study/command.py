"""`python -m trainmaster.cli study`: any tuning job, on the local stack or in the cloud, drawn."""

import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import GoogleAuthError
from google.cloud.aiplatform_v1.types import HyperparameterTuningJob

from trainmaster.cli.study.files import write_study
from trainmaster.cli.study.read import study_of
from trainmaster.client.clients import job_client

JOB_NAME = re.compile(r"projects/[^/]+/locations/(?P<region>[^/]+)/hyperparameterTuningJobs/[^/]+")


def write(job_name: str, out: Path) -> int:
    """0 once the study's page and picture are in `out`; 1 with the reason if the job cannot be read."""
    name = JOB_NAME.fullmatch(job_name)
    if name is None:
        print(
            f"{job_name!r} names no tuning job. A name is "
            "projects/PROJECT/locations/REGION/hyperparameterTuningJobs/ID; the run record holds it as job.name.",
            file=sys.stderr,
        )
        return 1
    try:
        job = _job(job_name, name["region"])
    except GoogleAPICallError as error:
        print(f"The job could not be read: {error.message}", file=sys.stderr)
        return 1
    except (GoogleAuthError, OSError) as error:  # no credentials; nobody answers
        print(
            f"JobService could not be asked: {error}\n"
            "For a local stack, source its stack.env; for the cloud, gcloud auth application-default login.",
            file=sys.stderr,
        )
        return 1
    study = study_of(job)
    best = study.best
    prefix = job.trial_job_spec.base_output_directory.output_uri_prefix.rstrip("/")
    files = write_study(
        study, out, model_uri=f"{prefix}/{best.id}/model/" if best and prefix else None, at=datetime.now(UTC)
    )
    print(f"{files.html}\n{files.png}")
    return 0


def _job(job_name: str, region: str) -> HyperparameterTuningJob:
    client = job_client(region=region, vertex_host=os.environ.get("VERTEX_EMULATOR_HOST"))
    try:
        return client.get_hyperparameter_tuning_job(name=job_name)
    finally:
        client.transport.close()
