"""The smoke run: prepares the stage, starts and watches the replicas, and collects their output."""

import random
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trainmaster.inspect.finding import ProgramFinding, UnusableProgram
from trainmaster.inspect.request import ProgramRequest
from trainmaster.inspect.smoke.judge import UNKNOWN_FLAG, ReplicaRun, judge_run, judge_values
from trainmaster.inspect.smoke.last_error import parse_last_error
from trainmaster.inspect.smoke.stage import SmokeStage, stage_folders
from trainmaster.inspect.smoke.uris import Paths
from trainmaster.inspect.smoke.watch import Limits, SmokeReplica, State, watch

DUMPS = {"PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
PORTS = range(20_000, 32_000)
"""Below those that kernels give to connections: a replica listens seconds after its port was found free."""
SHARES_GPU = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}  # two replicas on one machine


@dataclass(frozen=True, kw_only=True)
class SmokeRun:
    """`variables` are those of the image, without the service's. `keep` is where the output is copied to.

    `takes_flags`: whether the words that start the program pass a trial's flags on to it.
    """

    command: Sequence[str]
    root: Path
    variables: Mapping[str, str]
    request: ProgramRequest | None
    replicas: int
    takes_flags: bool
    paths: Paths
    limits: Limits
    keep: Path | None = None

    def findings(self) -> list[ProgramFinding]:
        """What the runs show. Every process that was started has ended.

        A study's program is run twice, with different values of its parameters, and the second time with a flag that
        it cannot know.

        Raises:
            UnusableProgram: the program cannot be started.
        """
        request = self.request
        parameters = () if request is None else request.parameters
        flags, others = (
            [f"--{parameter.name}={parameter.samples[trial]}" for parameter in parameters] for trial in (0, 1)
        )
        first = self._outcomes(flags, "1" if parameters else "")
        findings = judge_run(first, request, self.paths.doubt)
        if request is not None and parameters and all(outcome.is_fine for outcome in first):
            second = self._outcomes([*others, f"--{UNKNOWN_FLAG}=1"], "2")
            findings.append(judge_values(first[0], second[0], request))
        return findings

    def _outcomes(self, flags: Sequence[str], trial: str) -> list[ReplicaRun]:
        """The outcome of each replica, the chief first."""
        request = self.request
        chief = "master" if request is not None and request.says_master else "chief"
        roles = [chief, "worker"][: self.replicas]
        addresses = dict(zip(roles, free_addresses(len(roles)), strict=True))
        words = [*self.command, *(flags if self.takes_flags else ())]
        metric = request.metrics[0] if request is not None and request.metrics else ""
        stages = stage_folders(self.root, roles, metric, uses_uris=self.paths.are_uris, trial=trial)
        with stages as stage, ExitStack() as started:
            # A handler's exit in between would leave behind a replica that is not registered yet.
            with put_off(signal.SIGTERM), put_off(signal.SIGINT):
                replicas = [self._start(role, words, addresses, stage, started) for role in roles]
            states = watch(replicas, self.limits)
            outcomes = [self._outcome(replica, states[replica.role], stage) for replica in replicas]
            self._keep(stage, roles)
        return outcomes

    def _outcome(self, replica: SmokeReplica, state: State, stage: SmokeStage) -> ReplicaRun:
        role = replica.role
        errors = stage.errors(role).replace(f"{stage.work(role)}/", f"{self.root}/")
        return ReplicaRun(
            name=f"{role}-0",
            state=state,
            status=replica.poll() if state is State.ENDED else None,
            seconds=replica.seconds,
            last_error=parse_last_error(errors, self.root),
            files=stage.model_files(role),
            stray_files=stage.stray_files(role),
            reported=stage.reported_metrics(role),
        )

    def _start(
        self,
        role: str,
        words: Sequence[str],
        addresses: Mapping[str, str],
        stage: SmokeStage,
        started: ExitStack,
    ) -> SmokeReplica:
        try:
            replica = SmokeReplica(
                role,
                words,
                cwd=stage.work(role),
                variables={**SHARES_GPU, **self.variables, **DUMPS, **stage.variables(role, addresses)},
                out=stage.output(role, "stdout"),
                err=stage.output(role, "stderr"),
            )
        except OSError as error:
            raise UnusableProgram(
                f"{self.command[0]!r} cannot be started: {error}. Give the program with its "
                f"arguments, or only arguments, after `--`."
            ) from error
        started.callback(replica.end)
        return replica

    def _keep(self, stage: SmokeStage, roles: Sequence[str]) -> None:
        if self.keep is None:
            return
        folder = self.keep / stage.trial
        folder.mkdir(parents=True, exist_ok=True)
        for role in roles:
            for stream in ("stdout", "stderr"):
                shutil.copyfile(stage.output(role, stream), folder / f"{role}-0.{stream}")


@contextmanager
def put_off(number: int) -> Iterator[None]:
    """Defer signals until the block ends. Only for the main thread."""
    came: list[int] = []
    try:
        with handling(number, came.append):
            yield
    finally:
        if came:
            signal.raise_signal(number)


@contextmanager
def handling(number: int, handle: Callable[[int], None]) -> Iterator[None]:
    """Handle signals so until the block ends. Only for the main thread."""
    before = signal.signal(number, lambda number, _frame: handle(number))
    try:
        yield
    finally:
        signal.signal(number, before)


def free_addresses(count: int) -> list[str]:
    """Addresses of this machine that were just free."""
    addresses: list[str] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(addresses) == count:
            break
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            addresses.append(f"127.0.0.1:{port}")
    return addresses
