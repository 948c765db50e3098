"""Deliveries that are interleaved step by step, in the order that the caller chooses."""

import threading
from collections.abc import Callable


class Pausable:
    """A function in its own thread, which blocks where it calls `pause` and continues when it is resumed.

    Only one thread runs at a time, so that a simulation has one order of steps and can be replayed.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._may_continue = threading.Semaphore(0)
        self._paused = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._crash: BaseException | None = None
        self._raised: BaseException | None = None
        self.ended = False
        self.result: object = None

    def resume(self, crash: BaseException | None = None) -> bool:
        """Continue until the next pause or the end; returns whether it has ended.

        With `crash`, that is raised where the function paused. What the function raises is raised here.
        """
        self._crash = crash
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        else:
            self._may_continue.release()
        self._paused.acquire()
        if self.ended:
            self._thread.join()
            if self._raised is not None:
                raise self._raised
        return self.ended

    def pause(self) -> None:
        """Called by the function itself: hand control back to the caller of `resume`."""
        self._paused.release()
        self._may_continue.acquire()
        if self._crash is not None:
            raise self._crash

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # raised again by `resume`
            self._raised = error
        self.ended = True
        self._paused.release()
