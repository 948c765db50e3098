"""Replicas forked from one process that has loaded TensorFlow, for loading it costs more than a small training.

The packages are loaded once for each pytest process, the trainer itself again in each replica.
tests/e2e and tests/inspect start `python -m trainer.task` as an image does.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.trainer.loaded"])
# The choices that trainer/__init__.py makes before TensorFlow is loaded.
_BEFORE_TENSORFLOW = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "1"}


class WarmProcess:
    """A separate `python` with the part of Popen's interface that tests use."""

    def __init__(
        self, *arguments: str, cwd: Path, environment: Mapping[str, str], out: Path, err: Path
    ) -> None:
        """Start `python -m arguments...` in a folder, with this environment and nothing on its standard input."""
        out.touch()
        err.touch()
        _load_with(_BEFORE_TENSORFLOW)
        self._process = _CONTEXT.Process(
            target=_run, args=(arguments, cwd, dict(environment), out, err), daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, within_s: float | None = None) -> int:
        self._process.join(within_s)
        if (status := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(f"replica {self.pid}", within_s or 0)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def stop() -> None:
    """End the process that has the packages loaded; a later start would load them again."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # what the library's own tests call


def _load_with(choices: Mapping[str, str]) -> None:
    """Start the process that loads the packages, if it does not run yet."""
    before = {name: os.environ.get(name) for name in choices}
    os.environ.update(choices)
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], out: Path, err: Path) -> None:
    for path, descriptor in ((out, 1), (err, 2)):
        opened = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path.insert(0, str(cwd))
    sys.argv = list(arguments)
    module, *_ = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
