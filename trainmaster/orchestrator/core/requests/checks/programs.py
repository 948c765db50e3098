"""Words of a request that no replica would hear, and programs that the service would not take."""

from collections.abc import Iterator

from trainmaster.orchestrator.core.documents.faults import Fault, fault_at, json_path
from trainmaster.orchestrator.core.documents.unvalidated import Path, at, mapping_at
from trainmaster.orchestrator.core.requests.programs import Running, names_program, roles_in, running

ENV_MOST = 100
"""Variables of one replica: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#ContainerSpec"""
ARGS_MOST_CHARS = 100_000
"""Of all arguments together: https://cloud.google.com/vertex-ai/docs/training/create-custom-job"""
_WORDS = ("command", "args", "env")


def program_faults(document: object) -> Iterator[Fault]:
    """Programs that no role runs, commands that packages cannot have, and what is beyond the service's limits.

    The same words reach several roles: each place is told once.
    """
    told: dict[str, Fault] = {}
    for fault in (*_unheard(document), *_commands(document), *_limits(document)):
        told.setdefault(fault.path, fault)
    yield from told.values()


def _unheard(document: object) -> Iterator[Fault]:
    """What the request says at its top is for roles that name no program; there may be none."""
    top, roles = mapping_at(document), list(roles_in(document))
    chief = mapping_at(document, "cluster", "chief")
    if not names_program(chief):
        return
    unused: tuple[str, ...] = ("image", "python_package")
    if all(names_program(role) for _, role in roles):
        unused = (*unused, *_WORDS)
    for key in unused:
        if key in top:
            yield fault_at(
                (key,),
                "no replica is told this: the chief names a program of its own, "
                "and a role that does is described by itself alone",
                found=top[key],
                repair=f"leave it out, or write it as cluster.chief.{key}",
            )


def _commands(document: object) -> Iterator[Fault]:
    for role, _ in roles_in(document):
        runs = running(document, role)
        if runs.is_package and runs.command_at not in (None, (*runs.named_at, "command")):
            yield fault_at(
                runs.command_at or (),
                f"a Python package is started by its module, and {role} would run one",
                found=at(document, *map(str, runs.command_at or ())),
                repair=f"leave it out, or name the image that it belongs to as cluster.{role}.image",
            )


def _limits(document: object) -> Iterator[Fault]:
    asked = at(document, "cluster", "replica_environment")
    mine = 0 if asked in (None, "vertex") else 1
    for role, pool in roles_in(document):
        runs = running(document, role)
        if len(runs.env) + mine > ENV_MOST:
            yield _too_many_variables(("cluster", role, "env") if "env" in pool else ("env",), runs, mine)
        length = sum(len(word) for word in runs.args if isinstance(word, str))
        if length > ARGS_MOST_CHARS:
            yield Fault(
                path=json_path(runs.args_at),
                problem="the arguments are too long",
                found=f"{length} characters",
                allowed=f"at most {ARGS_MOST_CHARS} characters together",
                repair="put long values in a file that the program reads, and name that",
            )


def _too_many_variables(path: Path, runs: Running, mine: int) -> Fault:
    also = ", one of them for replica_environment" if mine else ""
    return Fault(
        path=json_path(path),
        problem="too many environment variables, the request's own among them",
        found=f"{len(runs.env) + mine}{also}",
        allowed=f"at most {ENV_MOST}",
    )
