"""The whole stack: claimed state, running services, provisioned resources, functions, events, ticks."""

import asyncio
import contextlib
import gc
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from trainstack.find import registered_stack
from trainstack.functions.function import FunctionDeployment, fork_server
from trainstack.process.fork_server import ForkServer
from trainstack.process.output import OutputStream
from trainstack.process.processes import ProcessGuard
from trainstack.sqlite import DiskFullError, StateDamagedError, StateInUseError
from trainstack.stack.console import SERVICE as CONSOLE
from trainstack.stack.console import StackConsole, run_console
from trainstack.stack.errors import StackRefusedError, StateError
from trainstack.stack.options import StackOptions
from trainstack.stack.state import USER_FOLDER, StateFolder, current_images, provide
from trainstack.stack.table import endpoints
from trainstack.stack.topology import Topology, sources_of

if TYPE_CHECKING:
    from trainstack.functions.instance import FunctionsHost
    from trainstack.stack.deliveries import Show
    from trainstack.stack.services import RunningServices

_GUARD_GRACE_S = 2.0
STOP_DEADLINE_S = 9.0
"""A longer stop is cut short; the guard ends what is left."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True)
class Product:
    """What runs on a stack, which knows nothing more about it.

    Attributes:
        stage: a command that makes the folder of the functions' source, with `main.py`, and the working directory for it.
            It gets the folder as its last argument, at every start unless the options name a folder.
        preload: a module that the functions' server imports, if the source has it, so that functions start sooner.
        images: source trees by the URI of the image that each provides, unless the user provides it.
        permissions: the file with the grants of accounts, such as trainmaster/deploy/permissions.yaml.
        machines: the file with the machine types of Vertex AI, such as functions/policy.yaml; without one, jobs may name
            any.
        teams: each with the topic of its requests, if it has one.
        publish: called once when the functions run, in a thread, with the folder of their source and the address of Cloud
            Storage. It may raise `StackRefusedError`.
        show: see `Show`.
        announce: called when the stack is ready; its text is printed before the table of addresses.
    """

    stage: Sequence[str]
    stage_in: Path
    preload: str = ""
    images: Mapping[str, Path] = field(default_factory=dict)
    permissions: Path
    machines: Path | None = None
    teams: Mapping[str, str | None] = field(default_factory=dict)
    publish: Callable[[Path, str], None]
    show: "Show"
    announce: Callable[[], str]


@dataclass(kw_only=True, eq=False)
class Stack:
    """A stack on a claimed state folder, stopped with `running`; no process of it remains afterwards.

    `beside` are further deployments of the product in the same project, without the topics of teams' requests.
    `console` starts with the first browser that connects, to which it says that the stack is starting. `gcloud` and
    `clients` are variables for the local user's tools; see `user_variables`.
    """

    options: StackOptions
    topology: Topology
    beside: Sequence[Topology] = ()
    state: StateFolder
    product: Product
    console: StackConsole | None
    running: AsyncExitStack
    guard: ProcessGuard = field(init=False)
    services: "RunningServices" = field(init=False)
    host: "FunctionsHost" = field(init=False)
    gcloud: Mapping[str, str] = field(init=False)
    clients: Mapping[str, str] = field(init=False)

    @property
    def is_enforced(self) -> bool:
        """Whether the services refuse what accounts have no permission for."""
        return self.options.isolation == "enforced"

    async def start(self) -> None:
        """Start everything.

        Raises:
            StackRefusedError: a service cannot run or refuses a resource; or the functions cannot be staged, or
                one does not start.
        """
        running, topology, product = self.running, self.topology, self.product
        self.guard = ProcessGuard(grace_s=_GUARD_GRACE_S)
        running.push_async_callback(self.guard.stop, grace_s=_GUARD_GRACE_S)
        self.state.own(watcher_pid=self.guard.watcher_pid)
        if self.console is not None:
            self._start_console(self.console)
        loading = asyncio.create_task(self._fork_server())
        running.callback(loading.cancel)
        await asyncio.to_thread(_import_services)
        from trainstack.functions.instance import FunctionsHost, StartFailedError
        from trainstack.jobs.resource.machines import machine_types_from
        from trainstack.stack.access import grants_of
        from trainstack.stack.clients import function_variables, user_variables
        from trainstack.stack.deliveries import deliver_events
        from trainstack.stack.receiver import Receiver
        from trainstack.stack.services import RunningServices

        services = self.services = RunningServices(
            options=self.options,
            state=self.state,
            guard=self.guard,
            grants=grants_of(
                topology, product.permissions, product.teams, beside=self.beside, enforced=self.is_enforced
            ),
            running=running,
        )
        await services.start(
            images=self._images(),
            images_topic=self._images_topic(),
            machines=machine_types_from(product.machines) if product.machines else {},
        )
        receiver = Receiver(self.state.path)
        running.callback(receiver.close)
        server = await loading
        deployments = [
            FunctionDeployment(
                server=server,
                # The topology takes precedence: it may point a function at another server, for example a proxy.
                environment={
                    "GOOGLE_CLOUD_PROJECT": each.project,
                    # Clients go through the gateway, as a replica's do, except that of Cloud Storage, of which the functions
                    # make most of their calls: this endpoint gets credentials, as one in STORAGE_EMULATOR_HOST does not.
                    "API_ENDPOINT_OVERRIDE": services.storage_url,
                    "LOOPBACK_RECEIVER": receiver.address,
                    **each.environment,
                },
                state=self.state.path,
                project=each.project,
                region=each.region,
                write_log=services.logging.write,
                identities=await function_variables(services, each),
            )
            for each in (topology, *self.beside)
        ]
        others = [each.functions for each in self.beside]
        self.host = FunctionsHost(
            topology.functions, deployments[0], beside=list(zip(others, deployments[1:], strict=True))
        )
        running.push_async_callback(self.host.stop)
        try:
            await self.host.start()
        except StartFailedError as error:
            raise StackRefusedError(str(error)) from error
        for each in (topology, *self.beside):
            sources = sources_of(each, product.teams if each is topology else {})
            await deliver_events(each, sources, services, self.host, show=product.show)
        await asyncio.to_thread(product.publish, server.cwd, services.storage_url)
        # Only from here on: injections must not affect the start of a stack.
        services.injections.put(self.options.injections)
        folder = self.state.folder(USER_FOLDER)
        folder.chmod(0o700)
        self.gcloud, self.clients = await user_variables(services, topology, folder=folder)

    def announce(self) -> None:
        """Print the table of addresses, and let clients find the stack."""
        # So that files can be copied there at once; the folders themselves are not objects.
        inbox = self.services.buckets_dir / self.topology.buckets["inbox"]
        for folder in ("requests", "rules"):
            (inbox / folder).mkdir(parents=True, exist_ok=True)
        functions = [(instance.function, instance.url) for instance in self.host.instances.values()]
        table = endpoints(
            self.services, self.topology, functions, env_path=self.state.env_path, enforced=self.is_enforced
        )
        sys.stdout.write(f"{self.product.announce()}\n{table}\n")
        sys.stdout.flush()
        self.state.keep_client_variables("gcloud", self.gcloud)
        self.state.keep_client_variables("gateway", self.clients)
        self.state.keep_project(self.topology.project, self.topology.region)
        self.state.announce(self._variables())

    def _variables(self) -> dict[str, str]:
        """The variables that `stack.env` exports: the services' addresses, and the functions' settings."""
        services, beside = self.services, [each.environment for each in self.beside]
        variables = {
            "GOOGLE_CLOUD_PROJECT": self.topology.project,
            **self.topology.environment,
            "STORAGE_EMULATOR_HOST": services.storage_url,
            "PUBSUB_EMULATOR_HOST": services.pubsub_host,
            "VERTEX_EMULATOR_HOST": services.vertex_url,
            "LOGGING_EMULATOR_HOST": services.logging_url,
            "MONITORING_EMULATOR_HOST": services.monitoring_url,
            # gcsfs would ask for a bucket's kind by gRPC over TLS at STORAGE_EMULATOR_HOST, for a minute a bucket.
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
            "TRAINMASTER_REGISTRY": services.registry,
            "TRAINMASTER_DEPLOYMENTS": " ".join(each["TRAINMASTER_DEPLOYMENT"] for each in beside),
            "IAM_EMULATOR_HOST": services.iam_url,
            "TRAINMASTER_CONSOLE": self.console.url if self.console else "",
        }
        variables.pop("TRAINMASTER_NOTICES_TOPIC", None)
        return {name: value for name, value in variables.items() if value}

    def _start_console(self, console: StackConsole) -> None:
        """Keep it running until `running` ends."""
        self.state.keep_ports({CONSOLE: console.port})
        log = self.state.folder("logs") / "console.log"
        log.unlink(missing_ok=True)
        self.running.callback(console.listener.close)
        self.running.callback(asyncio.create_task(run_console(console, self.guard, log=log, say=_say)).cancel)

    def _images_topic(self) -> str:
        if "images" in self.topology.topics:
            return self.topology.topic_name("images")
        if self.options.registry:
            raise StackRefusedError(
                "--registry: the topology has no topic `images`, which is notified of every push."
            )
        return ""

    def _images(self) -> Callable[[], dict[str, Path]]:
        """Gives the current images by URI, the product's own too unless the user provides them."""
        path, own = self.state.path, self.product.images
        provide(path, self.options.images)
        current_images(path, own)  # refuses a damaged file now, not at the first job
        return lambda: current_images(path, own)

    async def _fork_server(self) -> ForkServer:
        """The functions' server, which loads their modules while the services start.

        Raises:
            StackRefusedError: the functions cannot be staged.
        """
        source = self.options.functions or await self._stage_functions(self.state.path / "functions")
        server = fork_server(source, self.topology.environment, self.guard, preload=self.product.preload)
        self.running.push_async_callback(server.stop)
        server.start()
        return server

    async def _stage_functions(self, destination: Path) -> Path:
        """Have the folder made that has `main.py`, and return it.

        Raises:
            StackRefusedError: the command failed.
        """
        output: list[bytes] = []

        def keep(_stream: OutputStream, lines: list[bytes]) -> None:
            output.extend(lines)

        staging = self.guard.start(
            [*self.product.stage, str(destination)],
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd=self.product.stage_in,
            on_lines=keep,
        )
        if code := await staging.wait():
            text = b"\n".join(output).decode(errors="replace")
            raise StackRefusedError(
                f"Staging the functions failed: {shlex.join(self.product.stage)} ended with status {code}:\n{text}"
            )
        return destination


def _import_services() -> None:
    """Import most of the stack, which takes about as long as the functions' modules, on another core meanwhile.

    Imports leave little garbage, and what they load stays: collections would take a fifth of their time.
    """
    gc.disable()
    import_module("trainstack.stack.services")
    import_module("trainstack.stack.deliveries")
    gc.freeze()
    gc.enable()


def run_until_stopped(
    options: StackOptions,
    topology: Topology,
    state: StateFolder,
    *,
    settings: Path,
    product: Product,
    beside: Sequence[Topology] = (),
    console: StackConsole | None = None,
) -> None:
    """Run a stack on a claimed state folder until SIGINT, SIGTERM or SIGHUP, and release the folder.

    While it is ready, it is on the list of stacks in `settings`. `beside`: as in `Stack`. `console` runs beside the stack.

    A second signal, or a stop that takes longer than STOP_DEADLINE_S, ends this process at once, with status 1.

    Raises:
        StackRefusedError: the stack cannot start.
    """

    async def run() -> None:
        _cancel_at_a_signal(state)
        with contextlib.suppress(asyncio.CancelledError):
            async with AsyncExitStack() as running:
                stack = Stack(
                    options=options,
                    topology=topology,
                    beside=beside,
                    state=state,
                    product=product,
                    console=console,
                    running=running,
                )
                await stack.start()
                stack.announce()
                with registered_stack(state.path, settings):
                    await asyncio.Event().wait()

    try:
        asyncio.run(run())
    except (StateDamagedError, StateInUseError, DiskFullError) as error:
        raise StateError(str(error)) from error
    finally:
        state.close()


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # a closed terminal
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _cancel_at_a_signal(state: StateFolder) -> None:
    """Have the first signal cancel this task, and the second end the process."""
    loop = asyncio.get_running_loop()
    running = asyncio.current_task()

    def at_once() -> None:
        state.withdraw()
        os._exit(1)

    def stop() -> None:
        state.withdraw()
        _say(f"Stopping. The data stays in {state.path}.")
        for number in _SIGNALS:
            loop.add_signal_handler(number, at_once)
        deadline = threading.Timer(STOP_DEADLINE_S, at_once)  # the loop may end before its threads
        deadline.daemon = True
        deadline.start()
        if running is not None:
            running.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
