"""SIGTERM: all replicas save a checkpoint at the same step, then exit.

A Spot VM gives 30 s between the two signals of its preemption
(https://cloud.google.com/compute/docs/instances/spot); Vertex AI's own grace is not published.
A checkpoint needs every replica, so the replica that receives SIGTERM proposes a step to the others
through notes on the cluster's board, and takes no step before all have read the note. Synchronous
replicas are never more than one step apart, so no replica is past the next step.

        SIGTERM here                      note on the board
    ┌──────┴───────┐                            │
    │ steps since  │ yes: propose the   ┌───────▼────────┐  saved already, or
    │ the last     ├────next step──────►│ all save after │──after the save──► status 143
    │ checkpoint?  │                    │ that step      │
    └──────┬───────┘                    └────────────────┘
           │ no (start, evaluation, export): propose the step that is saved
           └──► status 143

A checkpoint is saved once the chief, which gets what it needs of every replica, has written it to its own disk; it
uploads it while training continues. Before the chief exits it finishes the upload, and before any other replica
exits it waits for that.
For checkpoints by the clock, the chief proposes a step in the same way, and all replicas continue after it.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import tensorflow as tf

from trainer.events import report_event
from trainer.replicas.cluster import ClusterSpec
from trainer.replicas.ending import PREEMPTED, end_with, on_sigterm
from trainer.replicas.peers import DAY_S, NoteBoard, Peers

TOLD_WITHIN_S = 5.0  # notes about the end
PUBLISHED_WITHIN_S = 120.0  # two uploads: the one under way when SIGTERM arrives, and the last


class Agreement(NamedTuple):
    """What all replicas do after `step`, counted from the start of the run: save, and exit if `leave`."""

    step: int
    leave: bool


class Preemption:
    """One replica's part in the agreements; its main thread trains, other threads listen."""

    def __init__(
        self, cluster: ClusterSpec, peers: Peers, *, done: int, finish_upload: Callable[[], bool]
    ) -> None:
        """`done` steps are in the checkpoint that the run continues from. Reacts to SIGTERM from now on.

        `finish_upload` waits until this replica's last checkpoint is in the bucket; whether it is.
        """
        self._cluster = cluster
        self._peers = peers
        self._finish_upload = finish_upload
        self._changed = threading.Condition(threading.RLock())
        self._done = self._saved = done
        self._asked_at: float | None = None
        self._agreement: Agreement | None = None
        self._number = 1  # of the next agreement
        if peers.board is not None:
            threading.Thread(
                target=self._read_notes, args=(peers.board,), name="agreements", daemon=True
            ).start()
        on_sigterm(self._react_to_sigterm)

    def is_agreed(self, done: int, *, propose: bool = False) -> bool:
        """Whether all replicas save now, after `done` steps. `propose`: propose that all do so soon.

        The next step is the earliest; a replica alone needs no agreement, and saves now. Must not be called
        at the end of an epoch, where all save anyway.
        """
        with self._changed:
            self._done = done
            pending, asked = self._agreement, self._asked_at is not None
        if self._peers.board is None:
            return asked or propose
        if pending is None and (asked or propose):
            self._propose_agreement(self._peers.board, Agreement(step=done + 1, leave=asked))
        return pending is not None and pending.step <= done

    @contextmanager
    def saving(self, done: int) -> Iterator[None]:
        """The block writes the state after `done` steps. Does not return if the replicas agreed to exit there."""
        with self._changed:
            self._done = done
            yield
            self._saved = done
            self._carry_out()
            asked = self._asked_at is not None
        if asked:
            self._propose_to_leave(done)

    def _react_to_sigterm(self) -> None:
        """React to SIGTERM; a second one changes nothing."""
        with self._changed:  # waits while a checkpoint is being written, not while it is uploaded
            if self._asked_at is not None:
                return
            self._asked_at = time.monotonic()
            done, saved = self._done, self._saved
        report_event(
            "preemption_asked",
            f"{self._cluster.replica} received SIGTERM: {done - saved} steps are not saved yet",
            severity="NOTICE",
            steps_to_save=done - saved,
        )
        if done == saved:
            self._propose_to_leave(saved)

    def _propose_to_leave(self, saved: int) -> None:
        board = self._peers.board
        if board is None or self._propose_agreement(board, Agreement(step=saved, leave=True)):
            with self._changed:
                self._end_preempted()

    def _propose_agreement(self, board: NoteBoard, agreement: Agreement) -> bool:
        """Whether `agreement` became the next one, and every replica has read it.

        For a future step it waits without limit: a replica that passed the step without reading would wait for
        the others, and they for it. The peers' watch detects a replica that will never read.
        """
        with self._changed:
            number = self._number
            within_s = DAY_S if agreement.step > self._saved else TOLD_WITHIN_S
            if self._agreement is not None:
                return False
        try:
            if not board.put(f"agreement/{number}", json.dumps(agreement)):
                return False
            for replica in self._peers.replicas:
                board.wait_for(f"agreement/{number}/read/{replica}", within_s)
        except tf.errors.OpError:
            pass  # the chief is gone; the next operation fails
        return True

    def _read_notes(self, board: NoteBoard) -> None:
        try:
            while True:
                number = self._number
                text = board.read(f"agreement/{number}")
                with self._changed:
                    self._agreement = Agreement(*json.loads(text))
                board.put(f"agreement/{number}/read/{self._cluster.replica}")
                with self._changed:
                    self._carry_out()
                    while self._number == number:
                        self._changed.wait()
        except tf.errors.OpError:
            return  # the chief is gone; the peers' watch and the training detect it

    def _carry_out(self) -> None:
        """Exit if the agreement says so and its step is saved. The caller holds the lock."""
        reached = self._agreement
        if reached is None or self._saved < reached.step:
            return
        if reached.leave:
            self._end_preempted()
        self._agreement = None
        self._number += 1
        self._changed.notify_all()

    def _end_preempted(self) -> None:
        """Exit; the chief is the last. The caller holds the lock: no other thread saves or leaves meanwhile."""
        is_saved = self._finish_upload()
        after_s = None if self._asked_at is None else round(time.monotonic() - self._asked_at, 2)
        where = "all saved in a checkpoint" if is_saved else "the last of which could not be saved"
        report_event(
            "preempted",
            f"{self._cluster.replica} exits after {self._saved} steps, {where}",
            severity="NOTICE",
            saved=is_saved,
            steps=self._saved,
            seconds_since_sigterm=after_s,
        )
        try:
            if self._peers.board is not None and not self._cluster.is_chief:
                self._peers.board.wait_for("published", PUBLISHED_WITHIN_S)
            self._peers.leave("published")
        except tf.errors.OpError:
            pass  # the chief is gone already
        end_with(PREEMPTED)
