"""`trainmaster pools`: the persistent resources that runs may use."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.table import print_table
from trainmaster.cli.verb import (
    output_option,
    print_for_programs,
    print_names,
    says_where,
    takes_context,
    takes_context_to_change,
    talk,
)
from trainmaster.client.clients import Clients

if TYPE_CHECKING:
    from trainmaster.client.pools import ListedPool

_IDS = click.argument("ids", nargs=-1, required=True, metavar="POOL...")


@click.group()
def pools() -> None:
    """Create, resize, list or delete persistent resources: machines that stay between runs, and are billed while they do.

    All with your own credentials, which need the role roles/aiplatform.admin for changes.
    """


@pools.command()
@output_option()
@takes_context
def ls(clients: Clients, output: str) -> int:
    """List pools, with their machines and price.

    They are the policy's, and the other persistent resources in its regions.
    """
    from trainmaster.client.pools import list_pools

    found = list_pools(clients)
    if not print_for_programs(output, lambda: [each.document for each in found], (each.id for each in found)):
        print_table([_row(each) for each in found], spare=("RUNS UP TO", "DELETED AFTER"))
        if not found:
            talk(f"No pools in {clients.context.title}. The policy's `pools` name them.")
    return ExitStatus.DONE


@pools.command()
@_IDS
@takes_context_to_change
def create(clients: Clients, ids: tuple[str, ...]) -> int:
    """Create pools of the policy.

    Waits until their machines are there.

    Exit status: 0 done, 2 one exists already, 3 the policy has no such pool; then none is created.
    """
    from trainmaster.client.pools import create_pools, list_pools

    says_where(clients, f"Creating {', '.join(ids)}")
    return _wait(create_pools(clients, list_pools(clients, ids)))


@pools.command()
@click.argument("pool", metavar="POOL")
@click.argument("count", type=click.IntRange(min=1))
@takes_context_to_change
def resize(clients: Clients, pool: str, count: int) -> int:
    """Change how many machines a pool has.

    Waits until POOL has COUNT machines; a smaller COUNT than run jobs is refused.

    Exit status: 0 done, 3 there is no such pool.
    """
    from trainmaster.client.pools import list_pools, resize_pool

    (found, *_) = list_pools(clients, [pool])
    says_where(clients, f"Giving {pool} {count} machines")
    return _wait({pool: resize_pool(clients, found, count)})


@pools.command()
@_IDS
@click.option("--cancel-jobs", is_flag=True, help="also those that run jobs, which are cancelled")
@takes_context_to_change
def rm(clients: Clients, ids: tuple[str, ...], cancel_jobs: bool) -> int:
    """Delete pools.

    Exit status: 0 done, 2 one runs jobs, or does not exist, 3 no such pool is known; then none is deleted.
    """
    from trainmaster.client.pools import delete_pools, list_pools

    says_where(clients, f"Deleting {', '.join(ids)}")
    return _wait(delete_pools(clients, list_pools(clients, ids), cancels=cancel_jobs))


def _wait(operations: Mapping[str, Any]) -> int:
    """Print the id of each pool whose change is done."""
    for pool_id, operation in operations.items():
        operation.result(timeout=None)
        print_names([pool_id])
    return ExitStatus.DONE


def _row(listed: "ListedPool") -> dict[str, str]:
    from trainmaster.client.times import span
    from trainmaster.orchestrator.core.policy.currency import shown_money

    pool, price = listed.pool, listed.per_hour
    return {
        "POOL": listed.id,
        "REGION": listed.region,
        "STATE": listed.state,
        "MACHINES": f"{listed.machines} of {listed.machine}",
        "USED": str(listed.used),
        "PER HOUR": "unknown" if price is None else shown_money(price, listed.currency, is_narrow=True),
        "RUNS UP TO": span(timedelta(seconds=pool.short_s)) if pool and pool.short_s else "-",
        "DELETED AFTER": span(timedelta(seconds=pool.idle_s)) if pool and pool.idle_s else "-",
    }
