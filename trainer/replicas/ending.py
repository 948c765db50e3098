"""Early exits of a replica: its exit statuses, and SIGTERM."""

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from trainer.events import report_event
from trainer.replicas.cluster import ClusterSpec

PEER_LOST = 134  # 128 + SIGABRT: Vertex AI treats it as possibly transient and restarts the job
PREEMPTED = 143  # 128 + SIGTERM, a shell's status of a process that SIGTERM ended
AGREED_WITHIN_S = 1.0

_before_loss: list[Callable[[], object]] = []
_ending = threading.Lock()


def end_with(status: int) -> NoReturn:
    """Exit at once. The interpreter's and TensorFlow's shutdown would wait for peers that may be gone.

    A peer that exited by agreement looks lost: before PEER_LOST this waits briefly for the thread of this
    process that carries out the agreement and exits with PREEMPTED, and calls what `before_loss` names.
    """
    try:
        if status == PEER_LOST:
            time.sleep(AGREED_WITHIN_S)
            for finish in _before_loss:
                finish()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:  # also if the readers of the pipes are gone
        os._exit(status)


def end_without_peer(event: str, message: str, **fields: object) -> NoReturn:
    """Report that a peer was lost or did not start, and exit with PEER_LOST."""
    try:
        report_event(event, message, severity="ERROR", **fields)
    finally:
        end_with(PEER_LOST)


def end_for_loss(cluster: ClusterSpec, peer: str, why: str) -> NoReturn:
    """Report that this replica lost `peer`, and exit with PEER_LOST; only once, even if several threads notice."""
    _ending.acquire()  # never released: other threads wait here for the exit
    end_without_peer(
        "peer_lost",
        f"{cluster.replica} lost {peer} ({why}) and exits, so that both are started again",
        peer=peer,
    )


def is_loss_of_peer(error: BaseException) -> bool:
    """Whether TensorFlow raised `error` because a member of the cluster is gone, frozen or replaced.

    NCCL reports that as a system, remote or internal error, and a GPU that failed as a CUDA error; TensorFlow raises all
    as InternalError or UnknownError (tensorflow/core/nccl/nccl_manager.cc). A restart helps unless NCCL was called wrongly:
    then it says `invalid argument` or `invalid usage`. Source: https://github.com/NVIDIA/nccl/issues/795 (read 2026-11).
    """
    errors = getattr(sys.modules.get("tensorflow"), "errors", None)
    if errors is None:
        return False
    kinds = errors.UnavailableError, errors.AbortedError, errors.DeadlineExceededError, errors.CancelledError
    if isinstance(error, errors.InternalError | errors.UnknownError) and "NCCL: " in str(error):
        return "NCCL: invalid" not in str(error)
    if isinstance(error, errors.InternalError | errors.FailedPreconditionError):
        return "ollective" in str(error)
    return isinstance(error, kinds)


def end_for_taken_address(error: Exception) -> None:
    """Exit with PEER_LOST if `error` says that another process has this replica's address: a restart may find it free."""
    is_taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    if is_taken or "Could not start gRPC server" in str(error):  # as TensorFlow says it
        end_without_peer(
            "address_taken",
            "another process has this replica's address in the cluster: it exits, so that all are started again. If this "
            "happens again, end that process or give the replica another port",
        )


def before_loss(finish: Callable[[], object]) -> None:
    """Call `finish`, which must not take long, before this process exits with PEER_LOST; the latest call counts."""
    _before_loss[:] = [finish]


def on_sigterm(react: Callable[[], None]) -> None:
    """Call `react` for every SIGTERM of this process from now on, in a thread, until this is called again.

    Python runs signal handlers between two steps of its main thread, which may wait in TensorFlow for
    minutes. The signal's number arrives in a pipe at once. Only for the main thread.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def wait() -> None:
        while os.read(reading, 1):
            react()
        os.close(reading)

    threading.Thread(target=wait, name="sigterm", daemon=True).start()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, _ignore_signal)
    if before != -1:
        os.close(before)  # its thread ends


def _ignore_signal(signal_number: int, frame: object) -> None:
    """With a handler, Python writes to the pipe instead of ending the process."""


def end_at_once() -> NoReturn:
    """The reaction of a replica that has nothing to save."""
    report_event("preempted", "received SIGTERM: nothing to save", severity="NOTICE", saved=False)
    end_with(PREEMPTED)
