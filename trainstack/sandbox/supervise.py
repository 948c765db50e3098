"""Waits for one process on behalf of another: passes signals on, reaps orphans, and reports the exit status."""

# Without the enumerations of the module signal, whose import takes 4 ms, a seventh of a replica's start.
import _signal as signal  # type: ignore[import-not-found]
import os

PASSED_ON = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)
PARENT_ENDED = signal.SIGPWR
"""Sent by the kernel when the stack has ended: `send_at_parents_end`."""
_HANDLED = PASSED_ON | {signal.SIGCHLD, signal.SIGALRM, PARENT_ENDED}
KILL: int = signal.SIGKILL
_SIGNALLED = 128


def hold_signals() -> None:
    """From here on signals wait for `wait_for`, also in processes forked later."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)


def become(argv: "list[str]") -> int:
    """Replace this process by a program, with the signals of a new process; return why it could not be, as a status.

    126 and 127 mean what they do in `docker run`: not executable, not found.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  becoming the replica's program is the purpose
    except FileNotFoundError:
        repair = ": args replace the image's CMD, so the program belongs in its ENTRYPOINT"
        _complain(
            f"{argv[0]!r}: executable file not found in $PATH{repair if argv[0].startswith('-') else ''}\n"
        )
        return 127
    except OSError as error:
        _complain(f"{argv[0]!r} cannot be executed: {error}\n")
        return 126


def wait_for(pid: int, *, grace_s: float) -> int:
    """The exit status of the child `pid`, 128 and the signal's number for a signal; reaps all other children.

    `grace_s` is what the child has from SIGTERM by other hands, once the stack has ended, to SIGKILL.
    """
    while True:
        number = signal.sigwait(_HANDLED)
        if number == signal.SIGCHLD:
            status = _reap(pid)
            if status is not None:
                return status
        elif number == PARENT_ENDED:
            signal.setitimer(signal.ITIMER_REAL, max(grace_s, 0.001))
        else:
            _send(pid, signal.SIGKILL if number == signal.SIGALRM else number)


def end_children() -> None:
    """Kill the children of this process, and those that it inherits from them, until none is left.

    For the parent of all orphans: `adopt_orphans`.
    """
    while children := _child_ids():
        for pid in children:
            _send(pid, signal.SIGKILL)
        os.waitpid(-1, 0)


def _child_ids() -> "list[int]":
    """Also those that have ended and wait to be reaped."""
    pid = os.getpid()
    with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
        return [int(word) for word in file.read().split()]


def _reap(wanted: int) -> "int | None":
    wanted_status = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return wanted_status
        if pid == 0:
            return wanted_status
        if pid == wanted:
            code = os.waitstatus_to_exitcode(status)
            wanted_status = _SIGNALLED - code if code < 0 else code


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it has ended
        return


def _complain(text: str) -> None:
    os.write(2, text.encode())
