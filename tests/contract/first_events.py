"""Two first events of a new instance: one thread pauses in the middle of an import, the other needs another library.

python tests/contract/first_events.py

Run in a separate process, as a library is imported only once; prints what the second thread did meanwhile, as JSON.
"""

import json
import linecache
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from trainmaster.orchestrator.adapters.gcs import GcsObjects
from trainmaster.orchestrator.adapters.vertex import VertexJobs

MIDDLE = "google.cloud.aiplatform_v1.services"
DEADLINE_S = 60.0


class Watch(MetaPathFinder):
    """Finds modules as usual, but MIDDLE pauses until the second thread imports something or waits for the lock."""

    def __init__(self, second: threading.Thread) -> None:
        self.second = second
        self.reached = False
        self.meanwhile: list[str] = []
        self._in_the_middle = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if threading.current_thread() is self.second and self._in_the_middle:
            self.meanwhile.append(fullname)
        if fullname != MIDDLE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Held(spec.loader, self)
        return spec

    def hold(self) -> None:
        """Pause after the module was found: while it is searched for, Python blocks imports of all other threads."""
        self.reached = self._in_the_middle = True
        self.second.start()
        deadline = time.monotonic() + DEADLINE_S
        while not self.meanwhile and not waits(self.second):
            assert time.monotonic() < deadline, "the second thread neither imported nor waited"
            time.sleep(0.001)
        self._in_the_middle = False


class Held(Loader):
    """Wraps a loader and pauses before it runs the module."""

    def __init__(self, loader: Loader, watch: Watch) -> None:
        self._loader = loader
        self._watch = watch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._watch.hold()
        self._loader.exec_module(module)


def waits(thread: threading.Thread) -> bool:
    """Whether the thread waits at the lock's line."""
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and "with IMPORTING" in linecache.getline(
        frame.f_code.co_filename, frame.f_lineno
    )


def kept(failures: list[str], call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        try:
            call()
        except Exception as failure:  # the test reads it
            failures.append(repr(failure))

    return run


def main() -> None:
    failures: list[str] = []
    endpoint = "http://127.0.0.1:1"
    jobs = VertexJobs(project="my-project", region="us-central1", endpoint=endpoint)
    objects = GcsObjects("my-project")
    second = threading.Thread(target=kept(failures, lambda: objects._client))
    watch = Watch(second)
    sys.meta_path.insert(0, watch)
    kept(failures, lambda: jobs._client("us-central1"))()
    second.join(DEADLINE_S)
    answer = {"reached": watch.reached, "meanwhile": watch.meanwhile, "failures": failures}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
