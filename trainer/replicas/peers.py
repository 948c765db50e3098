"""The other replicas of a synchronous cluster: notes between them, detecting their loss, exiting together.

TensorFlow's coordination service, which MultiWorkerMirroredStrategy starts, ends every collective
operation seconds after a member stopped its heartbeats (10 s by default; TensorFlow 2.21, killed and
frozen members measured). It does not end a replica that is not in a collective operation at that
moment; the watch in this module does.
"""

import sys
import threading
import time
from typing import Any, NoReturn

from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.ending import end_without_peer, on_sigterm

_ENDING = threading.Lock()
ASKED_EVERY_S = 5.0
ANSWERS_WITHIN_S = 10.0
ATTEMPTS = 2  # in a row without an answer; with the above a frozen peer is lost after 25 s at most
READ_WITHIN_S = 20.0  # a worker that is lost at the very end delays the chief no longer
DAY_S = 86400.0


def end_for_loss(cluster: Cluster, peer: str, why: str) -> NoReturn:
    """Report that this replica lost `peer`, and exit with PEER_LOST; only once, even if several threads notice."""
    _ENDING.acquire()  # never released: other threads wait here for the exit
    end_without_peer(
        "peer_lost",
        f"{cluster.replica} lost {peer} ({why}) and exits, so that both are started again",
        replica=cluster.replica,
        peer=peer,
    )


def is_loss_of_peer(error: BaseException) -> bool:
    """Whether TensorFlow raised `error` because a member of the cluster is gone, frozen or replaced."""
    errors = getattr(sys.modules.get("tensorflow"), "errors", None)
    if errors is None:
        return False
    kinds = errors.UnavailableError, errors.AbortedError, errors.DeadlineExceededError, errors.CancelledError
    if isinstance(error, errors.InternalError | errors.FailedPreconditionError):
        return "ollective" in str(error)
    return isinstance(error, kinds)


class Board:
    """Short notes that all replicas see: the key-value store of TensorFlow's coordination service.

    It lives in the chief's process. MultiWorkerMirroredStrategy starts it, and
    tf.distribute.experimental.PreemptionCheckpointHandler uses the same calls.
    """

    def put(self, name: str, text: str) -> bool:
        """Whether `text` is now the note of that name; a note is written once.

        Raises:
            tf.errors.OpError: the chief is gone.
        """
        import tensorflow as tf

        try:
            _context().set_config_key_value(f"trainmaster/{name}", text)
        except tf.errors.AlreadyExistsError:
            return False
        return True

    def wait_for(self, name: str, timeout_s: float) -> str | None:
        """The note of that name as soon as it exists; None after `timeout_s` seconds.

        Raises:
            tf.errors.OpError: the chief is gone.
        """
        import tensorflow as tf

        try:
            found = _context().get_config_key_value(f"trainmaster/{name}", int(timeout_s * 1000))
        except (tf.errors.DeadlineExceededError, tf.errors.NotFoundError):
            return None
        return str(found)


class Peers:
    """The replicas that this one trains with; for a single replica every method is a no-op."""

    def __init__(self, cluster: Cluster) -> None:
        """Must be called after the strategy is built: by then all members have started."""
        self.board = Board() if cluster.is_multi_worker else None
        self._cluster = cluster
        self._parted = threading.Event()
        if self.board is not None:
            threading.Thread(target=self._watch, name="peer-watch", daemon=True).start()

    @property
    def replicas(self) -> tuple[str, ...]:
        """The names of all that train, this one included, chief first."""
        return tuple(self._cluster.replicas_of(Role.CHIEF, Role.WORKER).values())

    def part(self) -> None:
        """Return when no member needs this one any more, so that none exits while another still reads from it.

        All must call this after their last collective operation, and exit soon afterwards. From here on SIGTERM
        is ignored: the run is finished, and would be repeated if its chief exited with a status other than 0.

        Raises:
            tf.errors.OpError: the chief is lost.
        """
        on_sigterm(lambda: None)
        try:
            if self.board is not None:
                self.board.put(f"done/{self._cluster.replica}", "")
                self._await_done(self.board)
        finally:
            self._parted.set()

    def _await_done(self, board: Board) -> None:
        """Wait for all, however long the chief's export takes; the watch stays active."""
        import tensorflow as tf

        chief, *workers = self.replicas
        _await(board, f"done/{chief}")
        try:
            for replica in workers:
                _await(board, f"done/{replica}")
            # The notes are in the chief's process: it exits when all have read them.
            if self._cluster.is_chief:
                until = time.monotonic() + READ_WITHIN_S
                for replica in workers:
                    board.wait_for(f"read/{replica}", max(0.1, until - time.monotonic()))
            else:
                board.put(f"read/{self._cluster.replica}", "")
        except tf.errors.OpError:
            return  # the chief has exited, because all are finished

    def _watch(self) -> None:
        """The chief checks the workers, a worker checks the chief. A replica that loses one exits; the others notice."""
        asked = [name for name in self.replicas if name.startswith("chief") is not self._cluster.is_chief]
        while not self._parted.wait(ASKED_EVERY_S):
            for replica in asked:
                why = _silence(replica, self._parted)
                if why is not None and not self._parted.is_set():
                    end_for_loss(self._cluster, replica, why)


def _await(board: Board, name: str) -> None:
    while board.wait_for(name, DAY_S) is None:
        time.sleep(ASKED_EVERY_S)  # the chief is frozen, and the call returns at once


def _silence(replica: str, parted: threading.Event) -> str | None:
    """Why `replica` counts as lost; None if it answers."""
    import tensorflow as tf

    role, _, index = replica.rpartition("-")
    why = None
    for _ in range(ATTEMPTS):
        try:
            _context().check_collective_ops_peer_health(
                f"/job:{role}/replica:0/task:{index}", timeout_in_ms=int(ANSWERS_WITHIN_S * 1000)
            )
        except tf.errors.FailedPreconditionError:
            return "another process has taken its place"
        except tf.errors.OpError as error:
            why = str(error).splitlines()[0]
            parted.wait(1.0)
        else:
            return None
    return why


def _context() -> Any:  # TensorFlow has no types
    from tensorflow.python.eager import context

    return context.context()
