"""Deliveries that run at once, one step at a time: whoever holds the baton runs, and the order is the caller's."""

import threading
from collections.abc import Callable


class Actor:
    """A piece of work in a thread of its own, which stops where it calls `stop` and goes on when it is resumed.

    Never do two run at the same time, so that a whole simulation is one order of steps and can be replayed.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._theirs = threading.Semaphore(0)
        self._ours = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._death: BaseException | None = None
        self._raised: BaseException | None = None
        self.ended = False
        self.answer: object = None

    def resume(self, death: BaseException | None = None) -> bool:
        """Let it go on until it stops again or has ended; whether it has ended.

        With `death` it dies where it stopped instead. What it raises in the end is raised here.
        """
        self._death = death
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        else:
            self._theirs.release()
        self._ours.acquire()
        if self.ended:
            self._thread.join()
            if self._raised is not None:
                raise self._raised
        return self.ended

    def stop(self) -> None:
        """Called by the work itself: whoever resumed it goes on, until it is resumed again."""
        self._ours.release()
        self._theirs.acquire()
        if self._death is not None:
            raise self._death

    def _run(self) -> None:
        try:
            self.answer = self._work()
        except BaseException as error:  # it is raised where the work was resumed
            self._raised = error
        self.ended = True
        self._ours.release()
