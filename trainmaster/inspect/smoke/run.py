"""One smoke run: prepares the stage, starts and watches the replicas, and collects their output."""

import random
import shutil
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trainmaster.inspect.finding import Unusable
from trainmaster.inspect.request import Request
from trainmaster.inspect.smoke.judge import ReplicaRun
from trainmaster.inspect.smoke.last_error import parse_last_error
from trainmaster.inspect.smoke.stage import Stage, staged
from trainmaster.inspect.smoke.watch import Limits, Replica, State, watch

DUMPS = {"PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
PORTS = range(20_000, 32_000)
"""Below those that kernels give to connections: a replica listens seconds after its port was found free."""
SHARES_GPU = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}  # two replicas on one machine


@dataclass(frozen=True, kw_only=True)
class SmokeRun:
    """`variables` are those of the image, without the service's. `keep` is where the output is copied to."""

    command: Sequence[str]
    root: Path
    variables: Mapping[str, str]
    request: Request | None
    replicas: int
    uses_uris: bool
    limits: Limits
    keep: Path | None = None

    def outcomes(self) -> list[ReplicaRun]:
        """The outcome of each replica, the chief first. Every process that was started has ended.

        Raises:
            Unusable: the program cannot be started.
        """
        request = self.request
        chief = "master" if request is not None and request.says_master else "chief"
        roles = [chief, "worker"][: self.replicas]
        addresses = dict(zip(roles, free_addresses(len(roles)), strict=True))
        with staged(roles, request, uses_uris=self.uses_uris) as stage, ExitStack() as started:
            # A handler's exit in between would leave behind a replica that is not registered yet.
            with put_off(signal.SIGTERM), put_off(signal.SIGINT):
                replicas = [started.enter_context(self._started(role, addresses, stage)) for role in roles]
            states = watch(replicas, self.limits)
            outcomes = [self._outcome(replica, states[replica.role], stage) for replica in replicas]
            self._keep(stage, roles)
        return outcomes

    def _outcome(self, replica: Replica, state: State, stage: Stage) -> ReplicaRun:
        return ReplicaRun(
            name=replica.name,
            state=state,
            status=replica.poll() if state is State.ENDED else None,
            seconds=replica.seconds,
            last_error=parse_last_error(stage.errors(replica.role), self.root),
            files=stage.model_files(replica.role),
            reported=stage.reported(replica.role),
        )

    def _started(self, role: str, addresses: Mapping[str, str], stage: Stage) -> Replica:
        # To a trial the service appends one legal value of each parameter.
        parameters = () if self.request is None else self.request.parameters
        try:
            return Replica(
                role,
                [*self.command, *(f"--{each.name}={each.sample}" for each in parameters)],
                cwd=self.root,
                variables={**SHARES_GPU, **self.variables, **DUMPS, **stage.variables(role, addresses)},
                out=stage.output(role, "stdout"),
                err=stage.output(role, "stderr"),
            )
        except OSError as error:
            raise Unusable(
                f"{self.command[0]!r} cannot be started: {error}. Give the program with its "
                f"arguments, or only arguments, after `--`."
            ) from error

    def _keep(self, stage: Stage, roles: Sequence[str]) -> None:
        if self.keep is None:
            return
        self.keep.mkdir(parents=True, exist_ok=True)
        for role in roles:
            for stream in ("stdout", "stderr"):
                shutil.copyfile(stage.output(role, stream), self.keep / f"{role}-0.{stream}")


@contextmanager
def put_off(number: int) -> Iterator[None]:
    """Defer signals until the block ends. Only for the main thread."""
    came: list[int] = []
    before = signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(number, before)
        if came:
            signal.raise_signal(number)


def free_addresses(count: int) -> list[str]:
    """Addresses of this machine that were just free."""
    found: list[str] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(found) == count:
            break
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(f"127.0.0.1:{port}")
    return found
