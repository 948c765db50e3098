"""The command line: `trainmaster up | down | status | env | provide | preempt`."""

import argparse
import contextlib
import logging
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from trainmaster.local.events.backoff import Backoff
from trainmaster.local.events.rest import CallRefusedError, call
from trainmaster.local.injections import Plan
from trainmaster.local.stack.errors import BadOptionsError, BadTopologyError, StackRefusedError, StateError
from trainmaster.local.stack.images import provide
from trainmaster.local.stack.options import (
    DEFAULT_PROJECT,
    DEFAULT_REGION,
    DEFAULT_STATE,
    DEFAULT_TOPOLOGY,
    Options,
    image_faults,
    injections_of,
    quota_of,
)
from trainmaster.local.stack.state import client_variables_path, owner_of

DOWN_DEADLINE_S = 20.0
CHIEF = "workerpool0-0"
_JOB_NAME = re.compile(r"projects/[^/]+/locations/[^/]+/customJobs/[0-9]+")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status: 0 done, 1 failed, 2 invalid usage.

    The reason goes to standard error.
    """
    arguments = _parser().parse_args(argv)
    try:
        match arguments.command:
            case "up":
                return _up(arguments)
            case "down":
                return _down(arguments.state)
            case "status":
                return _status(arguments.state)
            case "env":
                said = _client_environment(arguments.state, through_gateway=arguments.gateway)
            case "provide":
                said = _provide(arguments.state, dict(arguments.images))
            case _:
                _preempt(arguments.state, arguments.job, arguments.replica)
                said = f"Preempting replica {arguments.replica} of job {arguments.job}: SIGTERM was sent.\n"
        sys.stdout.write(said)
    except StackRefusedError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2 if isinstance(refusal, BadOptionsError | BadTopologyError) else 1
    return 0


def _up(arguments: argparse.Namespace) -> int:
    # Otherwise grpc's core logs every connection that a stop closes to the terminal; it reads this at import.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from trainmaster.local.stack.stack import (
        run_until_stopped,  # imported here, so that `down` and `status` start fast
    )

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    options = _options(arguments)
    options.check()
    run_until_stopped(options)
    return 0


def _down(state: Path) -> int:
    owner = owner_of(state)
    if owner is None:
        sys.stdout.write(f"No stack is running on {str(state)!r}.\n")
        return 0
    with contextlib.suppress(ProcessLookupError):
        os.kill(owner, signal.SIGTERM)
    deadline = time.monotonic() + DOWN_DEADLINE_S
    while owner_of(state) is not None:
        if time.monotonic() > deadline:
            raise StateError(f"The stack (process {owner}) did not stop within {DOWN_DEADLINE_S:.0f} s.")
        time.sleep(0.05)
    sys.stdout.write(f"The stack on {str(state)!r} has stopped.\n")
    return 0


def _status(state: Path) -> int:
    owner = owner_of(state)
    if owner is None:
        sys.stdout.write(f"No stack is running on {str(state)!r}. Start one with `trainmaster up`.\n")
        return 1
    env_path = state / "stack.env"
    if env_path.exists():
        sys.stdout.write(f"# ready, process {owner}\n{env_path.read_text()}")
    else:
        sys.stdout.write(f"# starting or stopping, process {owner}\n")
    return 0


def _client_environment(state: Path, *, through_gateway: bool) -> str:
    """`export` lines for a shell's `eval`.

    Raises:
        StateError: no stack is ready there.
    """
    kinds = ["gcloud", *(["gateway"] if through_gateway else [])]
    if owner_of(state) is None or not (state / "stack.env").exists():
        raise _not_ready(state)
    texts = [
        (state / "stack.env").read_text(),
        *(client_variables_path(state, kind).read_text() for kind in kinds),
    ]
    # It would take precedence over the metadata server's account.
    return "".join([*texts, *(["unset GOOGLE_APPLICATION_CREDENTIALS\n"] if through_gateway else [])])


def _not_ready(state: Path) -> StateError:
    start = f"trainmaster up --state {shlex.quote(str(state))}"
    return StateError(
        f"No stack is ready on {str(state)!r}. Start one with: {start}, or choose another folder with --state DIR."
    )


def _provide(state: Path, images: Mapping[str, Path]) -> str:
    if faults := image_faults(images):
        raise BadOptionsError("\n".join(faults))
    provide(state, images)
    return "".join(
        f"{tree.resolve()} provides the image {uri}, starting with the next job.\n"
        for uri, tree in images.items()
    )


def _preempt(state: Path, job: str, replica: str = CHIEF) -> None:
    """Preempt one replica of a running custom job. Returns when its SIGTERM is sent.

    Args:
        state: the stack's state folder.
        job: the job's id, or its full name.
        replica: as logs and error messages name it, `workerpool1-0`.

    Raises:
        StateError: no stack is ready there.
        StackRefusedError: the JobService refuses; the message says why.
    """
    variables = _variables(state)
    project, region = variables["GOOGLE_CLOUD_PROJECT"], variables["TRAINMASTER_REGION"]
    name = job if _JOB_NAME.fullmatch(job) else f"projects/{project}/locations/{region}/customJobs/{job}"
    try:
        call(
            "POST",
            variables["VERTEX_EMULATOR_HOST"],
            f"/emulator/v1/{name}:preempt",
            {"replica": replica},
        )
    except CallRefusedError as refused:
        raise StackRefusedError(refused.reason) from refused
    except OSError as error:
        raise StateError(f"The stack on {str(state)!r} does not answer: {error}.") from error


def _variables(state: Path) -> dict[str, str]:
    try:
        words = shlex.split((state / "stack.env").read_text(encoding="utf-8"))
    except OSError as error:
        raise _not_ready(state) from error
    return dict(word.split("=", 1) for word in words if "=" in word)


def _options(arguments: argparse.Namespace) -> Options:
    given = vars(arguments) | {
        "images": dict(arguments.image),
        "backoff": Backoff(min_s=arguments.retry_min_s, max_s=arguments.retry_max_s),
        "injections": injections_of(arguments.injections) if arguments.injections else Plan(),
        "quota": quota_of(arguments.quota) if arguments.quota else None,
    }
    return Options(**{each.name: given[each.name] for each in fields(Options)})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trainmaster",
        description="The local stack: Google Cloud's services on this machine.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="up|down|status|env|provide|preempt"
    )
    up = commands.add_parser("up", help="run a stack in the foreground until Ctrl-C", allow_abbrev=False)
    down = commands.add_parser("down", help="stop the stack running on a state folder")
    status = commands.add_parser("status", help="show the stack running on a state folder")
    environment = commands.add_parser(
        "env", help="print the variables that make gcloud use the stack, for eval"
    )
    environment.add_argument("--gateway", action="store_true",
        help="print instead the variables for programs that use Google's default endpoints, as in a local job")  # fmt: skip
    providing = commands.add_parser(
        "provide", help="provide images from source trees, even while a stack is running"
    )
    providing.add_argument("images", type=_image, nargs="+", metavar="URI=DIR",
        help="the image, and a source tree with a Dockerfile")  # fmt: skip
    taking = commands.add_parser("preempt", help="preempt the machine of a running job's replica")
    taking.add_argument("job", metavar="JOB", help="a custom job's id, or its full name")
    taking.add_argument("replica", metavar="REPLICA", nargs="?", default=CHIEF,
        help=f"the replica, by its name in the job's log (default: {CHIEF})")  # fmt: skip
    for command in (up, down, status, environment, providing, taking):
        command.add_argument(
            "--state", type=Path, default=DEFAULT_STATE, metavar="DIR",
            help=f"folder of the stack's state (default: {DEFAULT_STATE})",
        )  # fmt: skip
    _add_up_arguments(up)
    return parser


def _add_up_arguments(up: argparse.ArgumentParser) -> None:
    add = up.add_argument
    add("--image", type=_image, action="append", default=[], metavar="URI=DIR",
        help="an image and the source tree with a Dockerfile that provides it, now and at later starts; repeatable")  # fmt: skip
    add("--functions", type=Path, metavar="DIR",
        help="the staged functions (default: the repository's, staged at each start)")  # fmt: skip
    add("--topology", type=Path, default=DEFAULT_TOPOLOGY, metavar="FILE",
        help="the project's resources (default: trainmaster/deploy/topology.yaml)")  # fmt: skip
    add("--project", default=DEFAULT_PROJECT, metavar="ID", help=f"project id (default: {DEFAULT_PROJECT})")
    add("--region", default=DEFAULT_REGION, help=f"region (default: {DEFAULT_REGION})")
    add("--port-base", type=int, metavar="PORT",
        help="the first of four ports (default: the last stack's ports if they are free)")  # fmt: skip
    add("--mounts", choices=["auto", "private", "environment"], default="auto",
        help="where a replica finds the buckets: under /gcs, or under $TRAINMASTER_GCS_ROOT")  # fmt: skip
    add("--runtime", choices=["process", "container"], default="process",
        help="run replicas as processes, or as podman containers of their built images (default: process)")  # fmt: skip
    add(
        "--registry",
        action="store_true",
        help="also run an image registry, which notifies the topic gcr of every push",
    )
    add(
        "--capacity",
        type=int,
        metavar="N",
        help="maximum number of replicas that run at once (default: four per CPU)",
    )
    add("--grace-s", type=float, default=5.0, metavar="S",
        help="seconds from SIGTERM to SIGKILL for a replica (default: 5; on Google Cloud: 30)")  # fmt: skip
    add("--retry-min-s", type=float, default=Backoff.min_s, metavar="S",
        help="shortest pause before an event is redelivered (default: 1; on Google Cloud: 10)")  # fmt: skip
    add("--retry-max-s", type=float, default=Backoff.max_s, metavar="S",
        help="longest pause before an event is redelivered (default: 60; on Google Cloud: 600)")  # fmt: skip
    add("--injections", type=Path, metavar="FILE",
        help="fault injections for the services, JSON or YAML; see docs/reference/local-stack.md")  # fmt: skip
    add("--quota", type=Path, metavar="FILE",
        help="each region's quotas and stockouts for jobs, JSON or YAML (default: no limits)")  # fmt: skip
    add("--tick-s", type=float, metavar="S", help="tick every S seconds instead of by the schedules")


def _image(text: str) -> tuple[str, Path]:
    uri, equals, directory = text.partition("=")
    if not (uri and equals and directory):
        raise argparse.ArgumentTypeError(
            f"expected URI=DIR, found {text!r}; for example: example/trainer=./trainer"
        )
    return uri, Path(directory)
