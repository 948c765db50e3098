"""Runs functions-framework as its own command does, in one process for each function, all forked from this one.

This process loads what the functions import, which takes most of the time of their start; main.py itself runs in each
function's process. Unlike the framework's command, it refuses requests from web pages of other sites. It also does what
Cloud Run's front end does for a function: it reads each request whole before the function's concurrency counts it, so
that clients that send slowly, or never finish, delay no event.

python -P trainstack/functions/serve.py DESCRIPTOR

Run it in the staged source's directory, with the descriptor of the socket for orders (forks.py); an order has the
variables that functions-framework reads: FUNCTION_TARGET, FUNCTION_SIGNATURE_TYPE, HOST, PORT; and the listening socket,
which outlives the process, so that requests wait for the next. In the cloud, Cloud
Run's front end requires a token from every caller; here every process of this machine can reach the port, and so can
any web page in a browser on it. It is a script, not a module of the package: the process sees the function's source and
the installed packages only.
"""

import ast
import atexit
import contextlib
import errno
import gc
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

# Until everything is loaded: imports leave little garbage, and collections would take a tenth of the start.
gc.disable()

import flask  # noqa: E402
from functions_framework import create_app  # noqa: E402
from functions_framework._http import create_server  # noqa: E402
from gunicorn.workers.gthread import TConn, ThreadWorker  # type: ignore[import-untyped]  # noqa: E402

READ_S = 10.0
"""How long a client may take to send one request, and to take its response."""
READERS = 64
"""Requests that are being read at once, besides those that the function works on."""
_MAX_BODY_BYTES = 32 << 20
"""The largest request that Cloud Run accepts over HTTP/1: https://cloud.google.com/run/quotas"""
_FUNCTIONS = Path(__file__).resolve().parent
_SOURCE = Path("main.py")
_PRELOAD = "PRELOAD_MODULE"
"""The variable with the name of a module to import before functions are forked, if the source has it."""
_LOAD_ONLY = "LOAD_ONLY"
"""The variable of a process that only loads functions: their entry points, separated by commas."""


def main() -> None:
    """Fork a process for each order, until a signal ends this one; each serves its function until a signal ends it."""
    forks = _load_module("_trainmaster_forks", _FUNCTIONS / "forks.py")
    loopback = _load_module("_trainmaster_loopback", _FUNCTIONS.parent / "loopback.py")
    # The framework appends the source's folder to the import path; a trainmaster installed here would take
    # precedence.
    sys.path.insert(0, str(Path.cwd()))
    _load_imports(_SOURCE)
    module = os.environ.pop(_PRELOAD, "")
    gc.freeze()
    _serve(loopback, forks.take_orders(int(sys.argv[1]), partial(_preload, module)))


def _load_module(name: str, path: Path) -> ModuleType:
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{str(path)!r} cannot be loaded")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_imports(source: Path) -> None:
    """Load the modules that `source` imports. What fails here fails again in each function's process, and is logged there."""
    with contextlib.suppress(Exception):
        for statement in ast.parse(source.read_bytes()).body:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    import_module(alias.name)
            elif isinstance(statement, ast.ImportFrom) and statement.module:
                import_module(statement.module)


def _preload(module: str) -> None:
    """Libraries that a function imports with its first event are loaded once here, and not by each function."""
    if module:
        with contextlib.suppress(ImportError):  # another source
            import_module(module)
        gc.freeze()


def _serve(loopback: ModuleType, listener: int) -> None:
    signature = os.environ["FUNCTION_SIGNATURE_TYPE"]
    if loaded := os.environ.get(_LOAD_ONLY):
        for entry_point in loaded.split(","):
            create_app(entry_point, str(_SOURCE), signature)
        sys.stdout.flush()
        os._exit(0)
    app = create_app(os.environ["FUNCTION_TARGET"], str(_SOURCE), signature)

    def refuse_other_sites() -> None:
        refusal = loopback.foreign(flask.request.method, flask.request.headers.items())
        if refusal:
            flask.abort(403, description=refusal)

    app.before_request(refuse_other_sites)
    concurrency = int(os.environ["THREADS"])
    app.wsgi_app = WholeRequests(app.wsgi_app, concurrency)
    # Otherwise a full garbage collection in the forked worker copies every page that it shares with this process.
    gc.freeze()
    gc.enable()
    try:
        server = create_server(
            app,
            debug=False,
            worker_class=PatientWorker,
            threads=concurrency + READERS,
            bind=f"fd://{listener}",
        )
        server.run(os.environ["HOST"], int(os.environ["PORT"]))
    except SystemExit as ended:  # gunicorn and its forked workers end this way
        if not isinstance(ended.code, int):
            raise
        atexit._run_exitfuncs()  # noqa: SLF001  # there is no public way
        sys.stdout.flush()
        sys.stderr.flush()
        # Only the teardown of loaded libraries is left, which takes a stack's functions a second: skip it.
        os._exit(ended.code)


# Any: WSGI's environment, and gunicorn's untyped connections and sockets.
class WholeRequests:
    """A WSGI application that reads each request's body, and then lets at most `concurrency` requests in."""

    def __init__(self, app: Callable[..., Iterable[bytes]], concurrency: int) -> None:
        self._app = app
        self._slots = threading.BoundedSemaphore(concurrency)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(_MAX_BODY_BYTES)
        environ["wsgi.input"] = io.BytesIO(body)
        with self._slots:
            return self._app(environ, start_response)


class PatientWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn is untyped
    """Closes a connection whose request is not complete in time."""

    def handle(self, conn: Any) -> object:
        conn.init = partial(_init, conn)
        return super().handle(conn)


def _init(conn: Any) -> None:
    """What gunicorn does before each request of a connection; then the request has READ_S seconds."""
    TConn.init(conn)
    deadline = time.monotonic() + READ_S
    read = type(conn.parser.unreader).chunk

    def chunk(size_hint: int | None = None) -> bytes:
        conn.sock.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            content: bytes = read(conn.parser.unreader, size_hint)
        except TimeoutError:
            # gunicorn takes this as a client that is gone, and logs nothing.
            raise ConnectionResetError(errno.ECONNRESET, f"no whole request within {READ_S:g} s") from None
        conn.sock.settimeout(READ_S)
        return content

    conn.parser.unreader.chunk = chunk


if __name__ == "__main__":
    main()
