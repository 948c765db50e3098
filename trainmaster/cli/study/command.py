"""`trainmaster study`: any tuning job, on the local stack or in the cloud, drawn."""

import re
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmaster.cli.exits import Exit
from trainmaster.cli.extras import install_command
from trainmaster.cli.verb import print_names, takes_context

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

JOB_NAME = re.compile(r"projects/[^/]+/locations/(?P<region>[^/]+)/hyperparameterTuningJobs/[^/]+")


@click.command()
@click.argument("run", metavar="RUN|JOB")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="DIR",
    help="folder of study.html and study.png; default: this one",
)
@takes_context
def study(clients: "Clients", run: str, out: Path) -> int:
    """Draw a tuning: its learning curves, parameters and results.

    RUN is a run's id, the file that started it, or the id or key of a message. JOB is the name of any tuning job,
    projects/PROJECT/locations/REGION/hyperparameterTuningJobs/ID.
    """
    if find_spec("matplotlib") is None:
        raise click.ClickException(f"A study is drawn with matplotlib: {install_command(['study'])}")
    job_name, region = _job_of(clients, run)
    from trainmaster.cli.study.page import write_study
    from trainmaster.client.study.read import study_of

    job = clients.jobs_of_region(region).get_hyperparameter_tuning_job(name=job_name)
    read = study_of(job)
    best = read.best
    prefix = job.trial_job_spec.base_output_directory.output_uri_prefix.rstrip("/")
    model_uri = f"{prefix}/{best.id}/model/" if best and prefix else None
    print_names(map(str, write_study(read, out, model_uri=model_uri, at=datetime.now(UTC))))
    return Exit.DONE


def _job_of(clients: "Clients", text: str) -> tuple[str, str]:
    """The name and region of the tuning job that `text` names, or that the run has.

    Raises:
        NotFound: there is no such run, or it has no tuning job.
    """
    from trainmaster.client.errors import NotFound
    from trainmaster.client.find import find_run

    named = JOB_NAME.fullmatch(text)
    if named is not None:
        return text, named["region"]
    if text.startswith("projects/"):
        raise click.BadParameter(
            f"{text!r} is not the name of a tuning job. A name is "
            "projects/PROJECT/locations/REGION/hyperparameterTuningJobs/ID.",
            param_hint="JOB",
        )
    record = find_run(clients, text).record
    if record.job is None:
        raise NotFound(
            f"{record.run_id} is {record.state} and has no job yet: trainmaster logs -f {record.run_id}"
        )
    found = JOB_NAME.fullmatch(record.job.name)
    if found is None:
        raise NotFound(
            f"{record.run_id} is not a tuning, so it has no trials to draw. See it: trainmaster logs {record.run_id}"
        )
    return record.job.name, found["region"]
