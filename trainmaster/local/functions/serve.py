"""functions-framework as its own command runs it, but deaf to pages of other sites.

python -P trainmaster/local/functions/serve.py

Run in the staged source's directory, with the variables that functions-framework reads: FUNCTION_TARGET,
FUNCTION_SIGNATURE_TYPE, HOST, PORT. In the cloud, Cloud Run's own front end asks every caller for a token;
here the port is open to this machine, and a browser on it to the world.
A script, no module of the package: the process sees the function's source and what is installed, nothing of ours.
"""

import atexit
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
    # The framework appends the source's folder to the import path; a trainmaster that is installed here would win.
    sys.path.insert(0, str(Path.cwd()))
    app = create_app(os.environ["FUNCTION_TARGET"], "main.py", os.environ["FUNCTION_SIGNATURE_TYPE"])

    def refuse_other_sites() -> None:
        refusal = loopback.foreign(flask.request.headers.items())
        if refusal:
            flask.abort(403, description=refusal)

    app.before_request(refuse_other_sites)
    try:
        create_server(app, debug=False).run(os.environ["HOST"], int(os.environ["PORT"]))
    except SystemExit as ended:  # so end gunicorn and its workers, which are forked from here
        if not isinstance(ended.code, int):
            raise
        atexit._run_exitfuncs()  # noqa: SLF001  # there is no public way
        sys.stdout.flush()
        sys.stderr.flush()
        # All that is left is to take the loaded libraries down one by one, which takes a stack's functions a second.
        os._exit(ended.code)


if __name__ == "__main__":
    main()
