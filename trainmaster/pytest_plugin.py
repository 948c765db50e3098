"""The plugin of pytest for tests of a user's own Google Cloud code: the fixture `stack`. See docs/how-to/test-your-own-code.md.

pytest imports this module in every run of an environment with this package, so it imports the rest when a test asks for
the fixture.
"""

import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from google.cloud.storage import Bucket


class TestStack:
    """A local stack for a session's tests, whose clients' variables are set in this process. See the page for each method."""

    __test__ = False  # pytest takes it for tests otherwise

    def __init__(self, state: Path, variables: Mapping[str, str]) -> None:
        self.state = state
        self.variables = variables
        self.project = variables["GOOGLE_CLOUD_PROJECT"]
        self.region = variables["TRAINMASTER_REGION"]

    def name(self, kind: str = "test") -> str:
        """A name that nothing else on this stack has, valid for every service's resources."""
        return f"{kind}-{uuid.uuid4().hex[:12]}"

    def bucket(self) -> "Bucket":
        """A new, empty bucket."""
        from google.cloud.storage import Client

        return Client(project=self.project).create_bucket(self.name("bucket"))

    def topic(self) -> str:
        """The full name of a new topic."""
        from google.cloud.pubsub_v1 import PublisherClient

        name = f"projects/{self.project}/topics/{self.name('topic')}"
        return str(PublisherClient().create_topic(name=name).name)

    def subscription(self, topic: str, **settings: Any) -> str:  # Any: fields of a Subscription
        """The full name of a new subscription to the topic."""
        from google.cloud.pubsub_v1 import SubscriberClient

        name = f"projects/{self.project}/subscriptions/{self.name('subscription')}"
        with SubscriberClient() as subscriber:
            subscriber.create_subscription(request={"name": name, "topic": topic, **settings})
        return name

    def command(self, *words: "str | os.PathLike[str]") -> str:
        """What `trainmaster` with these words prints, on this stack and in the current folder.

        Raises:
            CommandFailed: its exit status is not 0; the message is what it said.
        """
        from trainmaster.cli.stack.process import command_line
        from trainmaster.client.context import VARIABLE

        environment = {**os.environ, VARIABLE: f"local:{self.state}"}
        line = command_line(*(os.fspath(word) for word in words))
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CommandFailed(
                f"trainmaster {' '.join(map(str, words))}: status {done.returncode}\n{done.stderr}"
            )
        return done.stdout

    def submit(self, *words: "str | os.PathLike[str]") -> str:
        """Submit a request's file, or what other words of `trainmaster submit` say. Returns the run's id."""
        return self.command("submit", *words).strip()

    def wait_for_run(self, run_id: str, *, timeout_s: float = 300.0) -> dict[str, Any]:  # Any: JSON
        """The run's record once the run has ended, however it ended.

        Raises:
            TimedOut: it has not ended in time.
        """
        from trainmaster.client.clients import Clients
        from trainmaster.client.context import context_of_stack
        from trainmaster.client.wait import wait_for_end, wait_until_settled

        with Clients(context_of_stack(self.variables, self.state)) as clients:
            run = wait_for_end(clients, run_id, timeout_s=timeout_s)
            return dict(wait_until_settled(clients, run).document)

    def inject(self, at: str, kind: str, **more: Any) -> str:  # Any: the fields of an injection
        """Inject a fault until the test ends, as on docs/reference/local-faults.md#injections. Returns its name."""
        injection = {"name": self.name("injection"), "at": at, "kind": kind, **more}
        self._injections("POST", injection)
        return str(injection["name"])

    def injections(self) -> dict[str, Any]:  # Any: JSON
        """The active injections, with how often each has struck."""
        return dict(self._injections("GET"))

    def _injections(self, method: str, plan: object = None) -> Any:  # Any: JSON
        from trainstack.events.rest import call

        return call(method, self.variables["VERTEX_EMULATOR_HOST"], "/emulator/v1/injections", plan)


class CommandFailed(Exception):
    """A verb of the command failed."""


_STACK = pytest.StashKey[TestStack]()


@pytest.fixture(scope="session")
def stack_options() -> list[str]:
    """The words of `trainmaster up` for the session's stack; override this fixture to change them."""
    return ["--console", "off"]


@pytest.fixture(scope="session")
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, stack_options: list[str]
) -> Iterator[TestStack]:
    """The session's stack. Each worker of pytest-xdist has its own: an injection strikes everything on a stack."""
    from trainmaster.cli.stack.process import local_stack
    from trainstack.find import read_stack_env
    from trainstack.stack.state import NOT_THROUGH_GATEWAY, client_variables_path

    folder = tmp_path_factory.mktemp("trainstack")
    state = folder / "state"
    with (
        local_stack(state, folder / "stack.log", stack_options) as variables,
        pytest.MonkeyPatch.context() as patch,
    ):
        kinds = [client_variables_path(state, kind).read_text() for kind in ("gcloud", "gateway")]
        for name, value in {**read_stack_env("\n".join(kinds)), **variables}.items():
            patch.setenv(name, value)
        for name in NOT_THROUGH_GATEWAY:
            patch.delenv(name, raising=False)
        request.config.stash[_STACK] = TestStack(state, variables)
        yield request.config.stash[_STACK]
        del request.config.stash[_STACK]


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Remove what a test injected, if the session has a stack."""
    if running := item.config.stash.get(_STACK, None):
        running._injections("DELETE")  # noqa: SLF001 - this module's own
