"""The stage of every demo: a fresh local stack, and the verbs of the command that run there."""

import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from trainmaster.cli.stack.process import command_line, local_stack
from trainmaster.client.clients import Clients
from trainmaster.client.context import VARIABLE, context_of_stack
from trainmaster.client.terminal import relative_to_cwd
from trainmaster.client.wait import poll
from trainmaster.resources import ROOT
from trainstack.stack.receiver import RECEIVED
from trainstack.stack.state import owner_of

EXAMPLES = ROOT / "examples"
POLICY = ".policy.yaml"
NOTIFY = 'notify: [{name: demo, webhook: {url: "http://receiver.localhost/", secret: demo}, when: {states: [succeeded]}}]\n'
"""The stack's own receiver gets a notice of each run that succeeds."""
MARKER = ".demo"  # a folder with this file was made by a demo, and may be emptied by one
DEADLINE_S = 600
UPLOADERS = 8

T = TypeVar("T")


@contextmanager
def doing(console: Console, what: str) -> Iterator[None]:
    """Say what is under way until the block ends: with a spinner on a terminal, as a line elsewhere."""
    if not console.is_terminal:
        console.print(f"{what}.", markup=False, highlight=False)
        yield
        return
    with console.status(Text(what, style="dim")):
        yield


class DemoFailed(Exception):
    """The demo cannot continue; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class DemoStage:
    """A stack that runs for one demo."""

    console: Console
    state: Path  # the stack's folder
    clients: Clients

    def run_verb(self, *words: str | Path) -> None:
        """Show a command line, and run it on the stack.

        Raises:
            DemoFailed: it ended with another status than 0.
        """
        self._run(words, stdout=None)

    def submit(self, *words: str | Path, verb: str = "submit") -> str:
        """Submit a request as `run_verb` would, or with the verb `again` a run's, and return the run's id."""
        run_id = self._run([verb, *words], stdout=subprocess.PIPE).strip()
        self.say(run_id)
        return run_id

    def say(self, text: str) -> None:
        """Print a line, whole."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def wait_for(self, what: str, answer: Callable[[], T | None]) -> T:
        """The first answer that is not None.

        Raises:
            DemoFailed: there was none within DEADLINE_S seconds.
        """
        with doing(self.console, f"Waiting for {what}"):
            given = poll(self.clients.context, answer, lambda each: each is not None, timeout_s=DEADLINE_S)
        if given is None:
            raise DemoFailed(f"Timed out after {DEADLINE_S} s waiting for {what}.")
        return given

    def say_notice(self) -> None:
        """Print the line that the stack's receiver got last."""
        file = self.state / RECEIVED
        came = self.wait_for("the notice", lambda: file.read_text().splitlines() if file.exists() else None)
        self.say(
            f"\nThe receiver of the policy's notify got:\n{json.loads(json.loads(came[-1])['body'])['message']}"
        )

    def write_dataset(self, folder: Path, *options: str) -> None:
        """Write a small TFDS data directory with examples/demo_dataset.py and these options.

        Raises:
            DemoFailed: it could not be written.
        """
        command = [sys.executable, str(EXAMPLES / "demo_dataset.py"), "--data_dir", str(folder), *options]
        with doing(self.console, "Writing the data set"):
            written = subprocess.run(command, check=False, capture_output=True, text=True)
        if written.returncode != 0:
            raise DemoFailed(f"The demo's data set could not be written.\n{written.stderr}")

    def upload_dataset(self, folder: Path) -> None:
        """Upload a data directory to where the requests expect it: a new bucket, which no rule watches."""
        bucket = self.clients.storage.create_bucket(f"{self.clients.context.project}-datasets")
        self.upload_folder(folder, bucket.name, "tfds/")

    def upload_folder(self, folder: Path, bucket: str, prefix: str) -> int:
        """Upload every file in `folder`, several at once, and return their number.

        Raises:
            google.api_core.exceptions.GoogleAPICallError: Cloud Storage refused one.
        """
        from google.cloud.storage import transfer_manager

        files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        with doing(self.console, f"Uploading {len(files)} files to gs://{bucket}/{prefix}"):
            transfer_manager.upload_many_from_filenames(
                self.clients.storage.bucket(bucket),
                files,
                source_directory=str(folder),
                blob_name_prefix=prefix,
                raise_exception=True,
                worker_type=transfer_manager.THREAD,
                max_workers=UPLOADERS,
            )
        return len(files)

    def _run(self, words: Sequence[str | Path], stdout: int | None) -> str:
        texts = [relative_to_cwd(word) if isinstance(word, Path) else word for word in words]
        shown = f"trainmaster {shlex.join(texts)}"
        self.say(f"\n$ {shown}")
        environment = {**os.environ, VARIABLE: self.clients.context.name}
        done = subprocess.run(
            command_line(*texts), env=environment, stdout=stdout, stderr=None, text=True, check=False
        )
        if done.returncode != 0:
            raise DemoFailed(f"`{shown}` ended with status {done.returncode}.")
        return done.stdout or ""


@contextmanager
def fresh_stage(console: Console, state: Path, *arguments: str) -> Iterator[DemoStage]:
    """A stack that `trainmaster up` started with `arguments` on the emptied folder, until the block ends.

    Raises:
        DemoFailed: as `make_fresh`.
        StackFailed: the stack did not start.
    """
    make_fresh(state)
    with ExitStack() as stack:
        with doing(console, "Starting the local stack"):
            log, policy = state.parent / f"{state.name}.log", state / POLICY
            policy.write_text(f"{(ROOT / 'functions' / 'policy.yaml').read_text()}\n{NOTIFY}")
            words = ["--console", "off", "--policy", str(policy), *arguments]
            environment = stack.enter_context(local_stack(state, log, words))
            (state / "secrets" / "demo").write_text(secrets.token_hex())
        clients = stack.enter_context(Clients(context_of_stack(environment, state.absolute())))
        stack.callback(console.print, "Stopping the local stack.")
        yield DemoStage(console=console, state=state, clients=clients)


def make_fresh(state: Path) -> None:
    """Make an empty folder for the stack; what an earlier demo left there is removed.

    Raises:
        DemoFailed: the folder exists and holds something that no demo made, or a demo that is running.
    """
    if (state / MARKER).exists() and owner_of(state) is not None:
        raise DemoFailed(
            f"A demo is already running in {state}. Wait for it to end, or name another folder with --state."
        )
    if state.exists() and any(state.iterdir()) and not (state / MARKER).exists():
        raise DemoFailed(
            f"{state} contains something other than an earlier demo. Name an empty folder with --state."
        )
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    (state / MARKER).touch()
