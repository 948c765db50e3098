"""`trainmaster web`: the console in the browser."""

import contextlib
import os
import re
import signal
import socket
from functools import partial
from typing import TYPE_CHECKING

import click

from trainmaster.cli.exits import ExitStatus, Stop
from trainmaster.cli.verb import context_of, context_option, talk
from trainmaster.client.context import Context, NoContext

if TYPE_CHECKING:
    from trainmaster.web.iap import IapDoor

TOKEN_VARIABLE, TOKEN_MIN_CHARS = "TRAINMASTER_CONSOLE_TOKEN", 24
LOOPBACK, ANY = "127.0.0.1", "0.0.0.0"  # noqa: S104 - Cloud Run's front end alone reaches the container
AUDIENCE = "/projects/NUMBER/locations/REGION/services/NAME"
_AUDIENCE = re.compile(r"/projects/[0-9]+/locations/[a-z0-9-]+/services/[a-z0-9-]+")
_ADDRESS = re.compile(r"[!-?A-~]+@[!-?A-~]+")
_TOKEN = re.compile(rf"[A-Za-z0-9_-]{{{TOKEN_MIN_CHARS},200}}")


@click.command()
@context_option
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="PORT", help="default: any free port"
)
@click.option("--write", is_flag=True, help="also change things: submit, cancel, fire, replay, roll back")
@click.option("--iap-audience", "audience", metavar="AUD", help="serve a team behind Identity-Aware Proxy")
@click.option("--as", "person", metavar="EMAIL", help="the same on a local stack, in this person's name")
@click.option("--listener", type=int, hidden=True, help="a listening socket that `up` has opened")
def web(*, context: str | None, port: int, write: bool, listener: int | None, **team: str | None) -> int:
    """Show runs, studies, rules and champions in the browser, live.

    Listens on this machine alone, and uses your own credentials. Prints the address to open; for a deployed project it has
    a secret that only your browser should see. A program needs the token of the session to change things: it is that of
    TRAINMASTER_CONSOLE_TOKEN, if this variable is set. Ctrl-C stops it.

    Behind Identity-Aware Proxy it listens on all addresses, every request must have the proxy's signature for this
    audience, /projects/NUMBER/locations/REGION/services/NAME, and the policy's console.people says who may change what.

    Exit status: 0 stopped, 2 wrong usage or the port is in use, 4 no stack is running, or the credentials are missing.
    """
    from trainmaster.web.faults import StackStarting
    from trainmaster.web.server import serve

    token = _token()
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    if listener is not None:  # `up` starts the console before the stack is ready
        opened = socket.socket(fileno=listener)
        is_secret = False
    else:
        is_secret = _is_deployed(context_of(context, changes=write))
        opened = _open_socket(port, ANY if team["audience"] else LOOPBACK)
    door = _door(opened, **team, is_deployed=is_secret, write=write)
    if team["person"]:
        from trainmaster.web.people import rights_text

        rights = rights_text(context_of(context), team["person"])

    def choose() -> Context:
        try:
            chosen = context_of(context, changes=write)
        except NoContext as none:
            if listener is None:
                raise
            raise StackStarting from none
        if (chosen.state is None) != is_secret:  # its secret, or its lack of one, is that of the first
            raise NoContext(f"This console is not for {chosen.title}: start another with `trainmaster web`.")
        return chosen

    def say(address: str) -> None:
        if listener is None:  # else `up` has printed the address
            click.echo(f"The console: {address}")
        if team["person"]:
            talk(rights)

    # The server sends itself the signal that ended it once more, after its cleanup.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        serve(choose, listener=opened, writable=write, is_secret=is_secret, token=token, door=door, ready=say)
    return ExitStatus.DONE


def _token() -> str | None:
    """The token that the user chose.

    Raises:
        Stop: it can be guessed, or cannot be a part of an address.
    """
    token = os.environ.get(TOKEN_VARIABLE) or None
    if token is not None and not _TOKEN.fullmatch(token):
        raise Stop(
            ExitStatus.USAGE,
            f"{TOKEN_VARIABLE}: expected {TOKEN_MIN_CHARS} to 200 letters, digits, - and _, found {len(token)} characters. "
            "A good one: openssl rand -hex 24",
        )
    return token


def _is_deployed(context: Context) -> bool:
    """Whether it is in the cloud. Then this also loads the credentials, so that missing ones are an error at once."""
    from trainmaster.client.clients import Clients

    if context.state is not None:
        return False
    with Clients(context) as clients:
        _ = clients.storage
    return True


def _door(
    opened: socket.socket, *, audience: str | None, person: str | None, is_deployed: bool, write: bool
) -> "IapDoor | None":
    """The door of a team's console, for a person behind a stand-in; None for your own. Raises: Stop: wrong options."""
    if audience is None and person is None:
        return None
    from trainmaster.web.iap import IapDoor
    from trainstack.iam.iap import KEYS_PATH, LOCAL_AUDIENCE, IapStandIn

    faults = []
    if not _AUDIENCE.fullmatch(LOCAL_AUDIENCE if audience is None else audience):
        faults.append(f"--iap-audience: expected {AUDIENCE}, found {audience!r}.")
    if person is not None and not _ADDRESS.fullmatch(person):
        faults.append(f"--as: expected an address, such as ada@example.com, found {person!r}.")
    if person is not None and (audience is not None or is_deployed):
        faults.append("--as: it is for a local stack, and without --iap-audience.")
    if write:
        faults.append("--write: leave it out; the policy's console.people says who may change what.")
    if faults:
        raise Stop(ExitStatus.USAGE, "\n".join(faults))
    if person is None:
        return IapDoor(audience or "")
    keys_url = f"http://{LOOPBACK}:{opened.getsockname()[1]}{KEYS_PATH}"
    return IapDoor(LOCAL_AUDIENCE, keys_url, in_front=partial(IapStandIn, person=person))


def _open_socket(port: int, host: str) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=128)
    except OSError as error:
        why = os.strerror(error.errno or 0)  # without what Python adds to it
        raise Stop(ExitStatus.USAGE, f"--port {port}: {why}. Choose another or omit it.") from error
