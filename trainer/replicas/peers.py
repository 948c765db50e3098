"""The other replicas of a synchronous cluster: notes between them, detecting their loss, exiting together.

TensorFlow's coordination service, which MultiWorkerMirroredStrategy starts, ends every collective
operation seconds after a member stopped its heartbeats (10 s by default; TensorFlow 2.21, killed and
frozen members measured). It does not end a replica that is not in a collective operation at that
moment; the watch that Peers starts does.
"""

import threading
import time
from collections.abc import Mapping

import tensorflow as tf
from tensorflow.python.eager import context

from trainer.replicas.cluster import ClusterSpec, ReplicaRole
from trainer.replicas.ending import on_sigterm
from trainer.replicas.liveness import ANSWER_WITHIN_S, PeerAnswer, answers_of, lost_in_step, watch_replicas

PARTED_WITHIN_S = 20.0  # a worker that is lost at the very end delays the chief no longer
DAY_S = 86400.0
ASKED_AGAIN_S = 1.0


class NoteBoard:
    """Short notes that all replicas see: the key-value store of TensorFlow's coordination service.

    It lives in the chief's process: once that is gone, all methods raise tf.errors.OpError. MultiWorkerMirroredStrategy
    starts it, and tf.distribute.experimental.PreemptionCheckpointHandler uses the same calls.
    """

    def put(self, name: str, text: str = "") -> bool:
        """Whether `text` is now the note of that name; a note is written once."""
        try:
            context.context().set_config_key_value(f"trainmaster/{name}", text)
        except tf.errors.AlreadyExistsError:
            return False
        return True

    def wait_for(self, name: str, timeout_s: float) -> str | None:
        """The note of that name as soon as it exists; None after `timeout_s` seconds."""
        try:
            note = context.context().get_config_key_value(f"trainmaster/{name}", int(timeout_s * 1000))
        except (tf.errors.DeadlineExceededError, tf.errors.NotFoundError):
            return None
        return str(note)

    def read(self, name: str) -> str:
        """The note of that name, however long it takes."""
        while (note := self.wait_for(name, DAY_S)) is None:
            time.sleep(ASKED_AGAIN_S)  # the chief is frozen, and the call returns at once
        return note


class Peers:
    """The replicas that this one trains with; for a single replica every method is a no-op."""

    def __init__(self, cluster: ClusterSpec) -> None:
        """Must be called after the strategy is built: by then all members have started."""
        self.board = NoteBoard() if cluster.is_multi_worker else None
        self._cluster = cluster
        self._parted = threading.Event()
        if self.board is not None:
            # The chief checks the workers, a worker checks the chief: a replica that loses one exits, and the others notice.
            asked = cluster.replicas_of(ReplicaRole.WORKER if cluster.is_chief else ReplicaRole.CHIEF)
            watch_replicas(cluster, asked, lost_in_step, until=self._parted, answers_of=_answers_of_the_same)

    @property
    def replicas(self) -> tuple[str, ...]:
        """The names of all that train, this one included, chief first."""
        return tuple(self._cluster.replicas_of(ReplicaRole.CHIEF, ReplicaRole.WORKER).values())

    def stop_watching(self) -> None:
        """From now on the loss of a replica does not end this process: all are about to end."""
        self._parted.set()

    def part(self) -> None:
        """Return when no member needs this one any more, so that none exits while another still reads from it.

        All must call this after their last collective operation, and exit soon afterwards. From here on SIGTERM
        is ignored: the run is finished, and would be repeated if its chief exited with a status other than 0.
        Waits for all, however long the chief's export takes; the watch stays active.

        Raises:
            tf.errors.OpError: the chief is lost.
        """
        on_sigterm(lambda: None)
        if self.board is not None and self._cluster.is_chief:
            for replica in self.replicas[1:]:
                self.board.read(f"done/{replica}")
        elif self.board is not None:
            self.board.put(f"done/{self._cluster.replica}")
            self.board.read("done")
        self.leave("done")

    def leave(self, name: str) -> None:
        """The chief notes `name`, after which all may exit; a worker has read that, and notes so. Ends the watch.

        The notes are in the chief's process: there, this returns when all have read them, or PARTED_WITHIN_S later.
        """
        self._parted.set()
        try:
            if self.board is not None and self._cluster.is_chief:
                self.board.put(name)
                until = time.monotonic() + PARTED_WITHIN_S
                for replica in self.replicas[1:]:
                    self.board.wait_for(f"{name}/read/{replica}", max(0.1, until - time.monotonic()))
            elif self.board is not None:
                self.board.put(f"{name}/read/{self._cluster.replica}")
        except tf.errors.OpError:
            return  # the chief has exited already


def _answers_of_the_same(names: Mapping[str, str]) -> dict[str, PeerAnswer]:
    """How each replica answers; TensorFlow knows of one that answers whether it is still the same process."""
    answers = answers_of(names)
    for address in [address for address, answer in answers.items() if answer is PeerAnswer.ANSWERS]:
        role, _, number = names[address].rpartition("-")
        try:
            context.context().check_collective_ops_peer_health(
                f"/job:{role}/replica:0/task:{number}", timeout_in_ms=int(ANSWER_WITHIN_S * 1000)
            )
        except tf.errors.FailedPreconditionError:
            answers[address] = PeerAnswer.REPLACED
        except tf.errors.OpError:
            pass  # it does not answer any more, which the next question shows
    return answers
