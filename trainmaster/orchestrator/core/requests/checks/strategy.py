"""Where the trainer of this repository is told a `--strategy` that its cluster contradicts.

The trainer says so itself when it starts, but that is after the machines were paid for. Only images that the
policy knows to run it are checked: another program's `--strategy` may mean anything.
"""

from collections.abc import Iterator, Sequence

from trainmaster.orchestrator.core.documents.faults import Fault, json_path, listed, nearest, shown
from trainmaster.orchestrator.core.documents.unvalidated import mapping_at
from trainmaster.orchestrator.core.policy.policy import Policy
from trainmaster.orchestrator.core.requests.programs import Running, roles_in, running

PARAMETER_SERVER = "parameter_server"
WITHOUT_SERVERS = ("multi_worker_mirrored", "mirrored", "one_device", "tpu")
STRATEGIES = ("auto", PARAMETER_SERVER, *WITHOUT_SERVERS)
OF_ONE_MACHINE = ("mirrored", "one_device", "tpu")
_FLAG = "--strategy"


def strategy_faults(policy: Policy, document: object, *, reduces: bool) -> Iterator[Fault]:
    """Every `--strategy` that cannot be; `reduces`: worker pool 2 holds reduction servers, which no strategy asks for.

    Roles that inherit their arguments share a place, which is reported once.
    """
    roles = set(mapping_at(document, "cluster"))
    faults = (
        _strategy_fault(policy, running(document, role), roles, reduces=reduces)
        for role, _ in roles_in(document)
    )
    yield from {fault.path: fault for fault in faults if fault is not None}.values()


def _strategy_fault(policy: Policy, runs: Running, roles: set[str], *, reduces: bool) -> Fault | None:
    row = policy.flags_of(runs.image) if runs.image is not None else None
    found = strategy_in(runs.args) if row is not None and row.runs_trainer else None
    if found is None:
        return None
    index, strategy = found
    path = json_path((*runs.args_at, index))
    if strategy not in STRATEGIES:
        return _unknown(path, strategy)
    problem, repair = _contradiction(strategy, roles, reduces=reduces)
    if not problem:
        return None
    return Fault(path=path, problem=problem, found=shown(f"{_FLAG}={strategy}"), repair=repair)


def _unknown(path: str, strategy: str) -> Fault:
    return Fault(
        path=path,
        problem="the trainer has no such strategy, and every replica would end with status 2",
        found=shown(f"{_FLAG}={strategy}"),
        allowed=listed(STRATEGIES),
        repair=nearest(strategy, STRATEGIES),
    )


def strategy_in(args: Sequence[object]) -> tuple[int, str] | None:
    """The strategy that the arguments ask for, and which of them does; the last one counts."""
    found = None
    for index, word in enumerate(args):
        if not isinstance(word, str):
            continue
        name, equals, value = word.partition("=")
        if name != _FLAG:
            continue
        after = args[index + 1] if index + 1 < len(args) else None
        if equals:
            found = (index, value)
        else:
            found = (index, after if isinstance(after, str) and not after.startswith("--") else "")
    return found


def _contradiction(strategy: str, roles: set[str], *, reduces: bool) -> tuple[str, str]:
    """What is wrong, and the repair; both empty where nothing is."""
    servers = "parameter_servers" in roles and not reduces
    if servers and strategy in WITHOUT_SERVERS:
        return (
            "this strategy uses no parameter servers, and the cluster has some",
            f"write {_FLAG}={PARAMETER_SERVER}, or leave parameter_servers out of the cluster",
        )
    if strategy == PARAMETER_SERVER and not (servers and "workers" in roles):
        return (
            "this strategy needs parameter servers and workers",
            f"add both to the cluster, or leave {_FLAG} out",
        )
    if strategy in OF_ONE_MACHINE and "workers" in roles:
        return (
            "this strategy trains on one machine: every worker would train a model of its own",
            f"write {_FLAG}=multi_worker_mirrored, or leave workers out of the cluster",
        )
    return "", ""
