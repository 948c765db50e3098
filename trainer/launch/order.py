"""The parsed command line: a framework and a command."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from trainer.faults import Unusable, nearest

PEERS_WITHIN_S = 1800.0


class Framework(str, Enum):  # noqa: UP042 - StrEnum needs Python 3.11, see trainer/replicas/cluster_variable.py
    """The framework whose variables are set."""

    TORCH = "torch"
    JAX = "jax"
    MXNET = "mxnet"
    HOROVOD = "horovod"
    TENSORFLOW = "tensorflow"
    AI_PLATFORM = "ai-platform"


NAMES = tuple(framework.value for framework in Framework)
USAGE = f"""\
python -m trainer.launch --framework {{{",".join(NAMES)}}} [--peers_within_s SECONDS] -- COMMAND [ARGUMENT ...]

Sets the variables that describe the cluster to the framework, from CLUSTER_SPEC or TF_CONFIG, and runs the command.

  --framework       torch        MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, LOCAL_RANK, ... and torchrun's variables
                    jax          JAX_COORDINATOR_ADDRESS, ... so that jax.distributed.initialize() needs no arguments
                    mxnet        DMLC_ROLE, DMLC_PS_ROOT_URI, ...: the chief is the scheduler, worker pool 2 the servers
                    horovod      HOROVOD_RANK, HOROVOD_SIZE, ...; the chief serves the rendezvous
                    tensorflow   TF_CONFIG, if the service did not set it or it names a `master`
                    ai-platform  TF_CONFIG and CLUSTER_SPEC in AI Platform Training's form
  --peers_within_s  seconds that horovod waits for the chief and the others (default: {PEERS_WITHIN_S:.0f})

Exit status: the command's; 2 the arguments or the cluster are invalid; 126 the command cannot be run;
127 the command was not found; 134 the chief did not answer in time.
"""


@dataclass(frozen=True, kw_only=True)
class Order:
    """`peers_within_s` bounds the wait for peers of frameworks that do not wait by themselves."""

    framework: Framework
    command: tuple[str, ...]
    peers_within_s: float = PEERS_WITHIN_S


def order_from(arguments: Sequence[str]) -> Order:
    """Parse the arguments, without the program's name.

    Raises:
        Unusable: an unknown option, a missing or unknown framework, no `--`, no command; every fault.
    """
    given = list(arguments)
    faults: list[str] = []
    cut = given.index("--") if "--" in given else None
    options, command = (given, []) if cut is None else (given[:cut], given[cut + 1 :])
    values = _values(options, faults)
    framework = _framework(values.get("--framework"), faults)
    peers_within_s = _seconds(values.get("--peers_within_s", str(PEERS_WITHIN_S)), faults)
    if cut is None:
        faults.append("The command is missing: end with `-- COMMAND`, as in `-- python train.py`.")
    elif not (command and command[0]):
        faults.append("No command follows `--`: add the command to run, as in `-- python train.py`.")
    if faults or framework is None:
        raise Unusable(*faults)
    return Order(framework=framework, command=tuple(command), peers_within_s=peers_within_s)


def _values(options: Sequence[str], faults: list[str]) -> dict[str, str]:
    """The value of each option, from `--name value` or `--name=value`; the last one of duplicates counts."""
    known = ("--framework", "--peers_within_s")
    values: dict[str, str] = {}
    rest = list(options)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in known:
            repair = nearest(name, known) or " A command and its arguments come after `--`."
            faults.append(f"Unknown option {name!r}; expected one of {', '.join(known)}.{repair}")
        elif equals:
            values[name] = value
        elif rest and not rest[0].startswith("--"):
            values[name] = rest.pop(0)
        else:
            values[name] = ""
    return values


def _framework(value: str | None, faults: list[str]) -> Framework | None:
    if value in NAMES:
        return Framework(value)
    if value is None:
        faults.append(f"--framework is missing; expected one of {', '.join(NAMES)}.")
    else:
        faults.append(
            f"Unknown --framework {value!r}; expected one of {', '.join(NAMES)}.{nearest(value, NAMES)}"
        )
    return None


def _seconds(value: str, faults: list[str]) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if 0 < seconds < float("inf"):
        return seconds
    faults.append(f"--peers_within_s must be a number of seconds above 0; found {value!r}.")
    return PEERS_WITHIN_S
