"""`trainmaster doctor`: test every part of a deployment, in the cloud or on the local stack."""

from pathlib import Path
from typing import Any

import click

from trainmaster.cli.verb import context_of, name_option, wait_option
from trainmaster.resources import TOPOLOGY


@click.command()
@click.option("--state", type=Path, metavar="DIR", help="the running local stack on this folder")
@click.option("--project", metavar="ID", help="the project in Google Cloud")
@click.option("--region", help="the deployment's region")
@name_option
@click.option(
    "--topology",
    type=Path,
    default=TOPOLOGY,
    metavar="FILE",
    help="what was deployed; default: the topology of this version",
)
@click.option("--request", type=Path, metavar="FILE", help="a request to try, instead of a small one")
@wait_option(60.0, "how long to wait for the functions' answers")
def doctor(**given: Any) -> int:  # Any: click's values, of the types above
    """Test every part of a deployment, and name the repair of what fails.

    Without --state, --project and --region, the current context is tested. Nothing is trained and no run is created.

    Exit status: 0 nothing failed, 1 something did, 2 no deployment is named or a file cannot be read, 4 nothing answers:
    no stack runs, or the credentials are missing.
    """
    from trainmaster.deploy.doctor.self_test import examine

    if not any(given[name] is not None for name in ("state", "project", "region")):
        current = context_of(None)
        given |= {"state": current.state, "name": given["name"] or current.deployment}
        if current.state is None:
            given |= {"project": current.project, "region": current.region}
    return examine(**given)
