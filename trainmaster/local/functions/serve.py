"""Runs functions-framework as its own command does, but refuses requests from web pages of other sites.

python -P trainmaster/local/functions/serve.py

Run it in the staged source's directory, with the variables that functions-framework reads: FUNCTION_TARGET,
FUNCTION_SIGNATURE_TYPE, HOST, PORT. In the cloud, Cloud Run's front end requires a token from every caller;
here every process of this machine can reach the port, and so can any web page in a browser on it. It is a
script, not a module of the package: the process sees the function's source and the installed packages only.
"""

import atexit
import gc
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import flask
from functions_framework import create_app
from functions_framework._http import create_server

_LOOPBACK = Path(__file__).resolve().parent.parent / "loopback.py"


def main() -> None:
    """Serve until a signal ends the process."""
    spec = spec_from_file_location("_trainmaster_loopback", _LOOPBACK)
    if spec is None or spec.loader is None:
        raise ImportError(f"{str(_LOOPBACK)!r} cannot be loaded")
    loopback = module_from_spec(spec)
    spec.loader.exec_module(loopback)
    # The framework appends the source's folder to the import path; a trainmaster installed here would take
    # precedence.
    sys.path.insert(0, str(Path.cwd()))
    app = create_app(os.environ["FUNCTION_TARGET"], "main.py", os.environ["FUNCTION_SIGNATURE_TYPE"])

    def refuse_other_sites() -> None:
        refusal = loopback.foreign(flask.request.method, flask.request.headers.items())
        if refusal:
            flask.abort(403, description=refusal)

    app.before_request(refuse_other_sites)
    # Otherwise a full garbage collection in the forked worker copies every page that it shares with this process.
    gc.freeze()
    try:
        create_server(app, debug=False).run(os.environ["HOST"], int(os.environ["PORT"]))
    except SystemExit as ended:  # gunicorn and its forked workers end this way
        if not isinstance(ended.code, int):
            raise
        atexit._run_exitfuncs()  # noqa: SLF001  # there is no public way
        sys.stdout.flush()
        sys.stderr.flush()
        # Only the teardown of loaded libraries is left, which takes a stack's functions a second: skip it.
        os._exit(ended.code)


if __name__ == "__main__":
    main()
