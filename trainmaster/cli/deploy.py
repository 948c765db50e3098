"""`trainmaster deploy` and `undeploy`: a deployment put into a project, brought up to date, or removed."""

import click

from trainmaster.cli.verb import context_of, name_option


def _check_place(project: str, region: str) -> None:
    """Before their names go into the topology, which is YAML."""
    if not (project and region) or "/" in project + region:
        raise click.UsageError(f"Expected a project and a region; found {project!r} and {region!r}.")
    context_of(f"{project}/{region}", named_by="--project and --region")


@click.command()
@click.option("--project", required=True, metavar="ID", help="project id")
@click.option("--region", required=True, help="for example us-central1")
@name_option
@click.option("--check", is_flag=True, help="only report what would prevent the deployment")
@click.option(
    "--plan", is_flag=True, help="show what would change; only enables two APIs and creates the state bucket"
)
def deploy(*, project: str, region: str, name: str, check: bool, plan: bool) -> int:
    """Deploy to a project, or bring a deployment up to date.

    Everything is checked first; where something stands in the way, every reason is printed and nothing is created.
    Safe to repeat: what is deployed already stays, what has changed is changed. Exit status: 0 done, 1 failed
    halfway (repeat the command), 2 refused before anything was created.
    """
    from trainmaster.deploy.up import Mode, deploy

    if check and plan:
        raise click.UsageError("--check and --plan are mutually exclusive.")
    _check_place(project, region)
    return deploy(project, region, name, Mode.CHECK if check else Mode.PLAN if plan else Mode.APPLY)


@click.command()
@click.option("--project", required=True, metavar="ID", help="project id")
@click.option("--region", required=True, help="where it is deployed")
@name_option
@click.option(
    "--delete-buckets", is_flag=True, help="also delete every request, record, model and Terraform's state"
)
def undeploy(*, project: str, region: str, name: str, delete_buckets: bool) -> int:
    """Remove a deployment. The buckets, and so every record and model, stay unless --delete-buckets is given.

    A later deployment takes the buckets over again. Exit status: 0 done, 1 failed halfway (repeat the command), 2 refused
    before anything was removed.
    """
    from trainmaster.deploy.down import undeploy

    _check_place(project, region)
    return undeploy(project, region, name, delete_buckets=delete_buckets)
