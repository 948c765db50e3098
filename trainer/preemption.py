"""SIGTERM: a checkpoint of all replicas at the same step, then the end.

A Spot VM gives 30 s between the two signals of its preemption
(https://cloud.google.com/compute/docs/instances/spot); Vertex AI's own grace is not published.
A checkpoint needs every replica, so the one that is asked to end proposes a step to all others
through notes on the cluster's board, and takes no step before all have read the note. Synchronous
replicas are never more than one step apart, so the next step is in nobody's past.

        SIGTERM here                      note on the board
    ┌──────┴───────┐                            │
    │ steps since  │ yes: propose the   ┌───────▼────────┐  saved already, or
    │ the last     ├────next step──────►│ all save after │──after the save──► status 143
    │ checkpoint?  │                    │ that step      │
    └──────┬───────┘                    └────────────────┘
           │ no (start, evaluation, export): propose the step that is saved
           └──► status 143

The chief has its checkpoint in the bucket before any of the others ends. Checkpoints by the clock
are agreed upon in the same way, by the chief, and nobody ends.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trainer.cluster import Cluster
from trainer.ending import PREEMPTED, end_with, on_sigterm
from trainer.events import report
from trainer.peers import Peers

READ_WITHIN_S = 5.0  # notes about the end
PUBLISHED_WITHIN_S = 60.0
DAY_S = 86400.0
READ_AGAIN_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """What all replicas do behind `step`, counted from the run's beginning: save, and perhaps end."""

    step: int
    leave: bool

    @property
    def text(self) -> str:
        return f"{self.step} {'leave' if self.leave else 'stay'}"


def agreement_from(text: str) -> Agreement:
    step, _, verb = text.partition(" ")
    return Agreement(step=int(step), leave=verb == "leave")


class Preemption:
    """One replica's part in the agreements; its main thread trains, others listen."""

    def __init__(self, cluster: Cluster, peers: Peers, *, done: int) -> None:
        """`done` steps are in the checkpoint that the run continues from. Reacts to SIGTERM from now on."""
        self._cluster = cluster
        self._peers = peers
        self._changed = threading.Condition(threading.RLock())
        self._done = self._saved = done
        self._asked_at: float | None = None
        self._agreement: Agreement | None = None
        self._number = 1  # of the agreement that comes next
        self._leaving = threading.Lock()
        if peers.board is not None:
            threading.Thread(target=self._read_notes, name="agreements", daemon=True).start()
        on_sigterm(self._asked)

    def is_agreed(self, done: int, *, wanted: bool = False) -> bool:
        """Whether all replicas save now, `done` steps being done. `wanted`: propose that all do so soon.

        The next step is the soonest. Must not be asked at an epoch's end, where all save anyway.
        """
        with self._changed:
            self._done = done
            pending, asked = self._agreement, self._asked_at is not None
        if pending is None and (asked or wanted):
            self._propose(Agreement(step=done + 1, leave=asked))
        return pending is not None and pending.step <= done

    @contextmanager
    def saving(self, done: int) -> Iterator[None]:
        """The block takes part in saving what `done` steps made. Does not return where that was agreed to be the end."""
        with self._changed:
            self._done = done
            yield
            self._saved = done
            self._carry_out()
            asked = self._asked_at is not None
        if asked and self._propose(Agreement(step=done, leave=True)):
            self._leave()

    def _asked(self) -> None:
        """SIGTERM; a second one changes nothing: what the first began is under way."""
        with self._changed:  # waits while a checkpoint is being written
            if self._asked_at is not None:
                return
            self._asked_at = time.monotonic()
            done, saved = self._done, self._saved
        report(
            "preemption_asked",
            f"{self._cluster.replica} is asked to end (SIGTERM): {done - saved} steps to save",
            severity="NOTICE",
            replica=self._cluster.replica,
            steps_to_save=done - saved,
        )
        if done == saved and self._propose(Agreement(step=saved, leave=True)):
            self._leave()

    def _propose(self, agreement: Agreement) -> bool:
        """Whether `agreement` became the next one, and every replica has read it.

        With a step to come there is no limit to that: a replica that passed the step unknowing would wait for
        the others, and they for it. The watch of the peers notices one that will never read.
        """
        import tensorflow as tf

        with self._changed:
            number = self._number
            within_s = DAY_S if agreement.step > self._saved else READ_WITHIN_S
            if self._agreement is not None:
                return False
            if self._peers.board is None:
                self._agreement = agreement
                return True
        try:
            if not self._peers.board.put(f"agreement/{number}", agreement.text):
                return False
            for replica in self._peers.replicas:
                self._peers.board.wait_for(f"agreement/{number}/read/{replica}", within_s)
        except tf.errors.OpError:
            pass  # the chief is gone; what follows finds out
        return True

    def _read_notes(self) -> None:
        import tensorflow as tf

        board = self._peers.board
        assert board is not None, "started for a cluster only"  # noqa: S101 - for the type checker
        try:
            while True:
                number = self._number
                text = board.wait_for(f"agreement/{number}", DAY_S)
                if text is None:  # nobody wrote, or the chief is frozen and the call returns at once
                    time.sleep(READ_AGAIN_S)
                    continue
                with self._changed:
                    self._agreement = agreement_from(text)
                board.put(f"agreement/{number}/read/{self._cluster.replica}", "")
                with self._changed:
                    self._carry_out()
                    while self._number == number:
                        self._changed.wait()
        except tf.errors.OpError:
            return  # the chief is gone; the watch of the peers and the training find out

    def _carry_out(self) -> None:
        """What is agreed upon and reached: the end, or nothing more. Holds the lock."""
        reached = self._agreement
        if reached is None or self._saved < reached.step:
            return
        if reached.leave:
            self._leave()
        self._agreement = None
        self._number += 1
        self._changed.notify_all()

    def _leave(self) -> None:
        """End this process; the chief is the last. Of several threads that come here, one does it."""
        import tensorflow as tf

        self._leaving.acquire()  # never released: the others wait here for the end
        own = self._cluster.replica
        after_s = None if self._asked_at is None else round(time.monotonic() - self._asked_at, 2)
        report(
            "preempted",
            f"{own} ends after {self._saved} steps, which a checkpoint holds",
            severity="NOTICE",
            replica=own,
            saved=True,
            steps=self._saved,
            seconds_since_sigterm=after_s,
        )
        board = self._peers.board
        try:
            if board is not None and self._cluster.is_chief:
                board.put("published", "")
                for replica in self._peers.replicas[1:]:
                    board.wait_for(f"left/{replica}", READ_WITHIN_S)
            elif board is not None:
                board.wait_for("published", PUBLISHED_WITHIN_S)
                board.put(f"left/{own}", "")
        except tf.errors.OpError:
            pass  # the chief is gone already
        end_with(PREEMPTED)
