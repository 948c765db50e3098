"""`trainmaster undeploy`: remove a deployment from a project."""

import click


@click.command()
@click.option("--project", required=True, metavar="ID", help="project id")
@click.option("--region", required=True, help="where it is deployed")
@click.option(
    "--delete-buckets", is_flag=True, help="also delete every request, record, model and Terraform's state"
)
def undeploy(*, project: str, region: str, delete_buckets: bool) -> int:
    """Remove a deployment. The buckets, and so every record and model, stay unless --delete-buckets is given.

    A later deployment takes the buckets over again. Exit status: 0 done, 1 failed halfway (repeat the command), 2 refused
    before anything was removed.
    """
    from trainmaster.deploy.down import undeploy

    return undeploy(project, region, delete_buckets=delete_buckets)
