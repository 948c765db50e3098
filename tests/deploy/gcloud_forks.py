"""gcloud commands, each in a process forked from one that has loaded gcloud's code, for loading it is most of their work.

CLOUDSDK_PYTHON_ARGS makes gcloud start this file instead of its program.
"""

import io
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

LOADED = (
    "googlecloudsdk.gcloud_main",
    "googlecloudsdk.api_lib.container.api_adapter",
    "googlecloudsdk.command_lib.projects.util",
    "googlecloudsdk.core.credentials.google_auth_credentials",
    "googlecloudsdk.core.credentials.requests",
)
"""What most commands load. One that another version of gcloud lacks is left out."""


@contextmanager
def gcloud_forks(environment: Mapping[str, str]) -> Iterator[Callable[[Sequence[str]], int]]:
    """A function that runs gcloud with arguments, one command at a time, and returns its exit status.

    Its output goes to that of the test.
    """
    with subprocess.Popen(
        ["gcloud"],
        env={**environment, "CLOUDSDK_PYTHON_ARGS": f"-S {__file__}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(arguments: Sequence[str]) -> int:
            print(json.dumps(arguments), file=process.stdin, flush=True)
            assert process.stdout is not None
            return int(process.stdout.readline())

        yield run
        process.stdin.close()
        assert process.wait(30) == 0


def serve(program: str) -> None:
    """Fork a process for each line of standard input, and print its exit status."""
    sys.path[:1] = [str(Path(program).parent)]
    runpy.run_path(program)  # finds its libraries
    for name in LOADED:
        with suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        if not (child := os.fork()):
            os.dup2(2, 1)
            sys.stdin = io.StringIO()  # closed, it would end gcloud
            sys.argv = [program, *json.loads(line)]
            runpy.run_path(program, run_name="__main__")
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201  # the caller reads it


if __name__ == "__main__":
    serve(sys.argv[1])
