"""`trainmaster study`: any tuning job, on the local stack or in the cloud, drawn."""

import os
import re
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmaster.cli.extras import install_command

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.types import HyperparameterTuningJob

JOB_NAME = re.compile(r"projects/[^/]+/locations/(?P<region>[^/]+)/hyperparameterTuningJobs/[^/]+")


@click.command()
@click.argument("job_name", metavar="JOB")
@click.option(
    "--out",
    type=Path,
    default=Path(),
    metavar="DIR",
    help="folder of study.html and study.png; default: this one",
)
def study(job_name: str, out: Path) -> int:
    """Draw a tuning job: its learning curves, parameters and results.

    JOB is projects/PROJECT/locations/REGION/hyperparameterTuningJobs/ID; the run record has it as job.name.
    """
    name = JOB_NAME.fullmatch(job_name)
    if name is None:
        raise click.BadParameter(
            f"{job_name!r} is not the name of a tuning job. A name is "
            "projects/PROJECT/locations/REGION/hyperparameterTuningJobs/ID; the run record holds it as job.name.",
            param_hint="JOB",
        )
    if find_spec("matplotlib") is None:
        raise click.ClickException(f"A study is drawn with matplotlib: {install_command(['study'])}")
    from trainmaster.cli.study.page import write_study
    from trainmaster.cli.study.read import study_of

    job = _read(job_name, name["region"])
    read = study_of(job)
    best = read.best
    prefix = job.trial_job_spec.base_output_directory.output_uri_prefix.rstrip("/")
    html, png = write_study(
        read, out, model_uri=f"{prefix}/{best.id}/model/" if best and prefix else None, at=datetime.now(UTC)
    )
    click.echo(f"{html}\n{png}")
    return 0


def _read(job_name: str, region: str) -> "HyperparameterTuningJob":
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError

    from trainmaster.client.clients import job_client

    try:
        client = job_client(region=region, vertex_host=os.environ.get("VERTEX_EMULATOR_HOST"))
        try:
            return client.get_hyperparameter_tuning_job(name=job_name)
        finally:
            client.transport.close()
    except GoogleAPICallError as error:
        raise click.ClickException(f"The job could not be read: {error.message}") from error
    except (GoogleAuthError, OSError) as error:  # no credentials; nothing answers
        raise click.ClickException(
            f"JobService could not be reached: {error}\n"
            "For a local stack, source its stack.env; for the cloud, gcloud auth application-default login."
        ) from error
