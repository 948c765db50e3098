"""The processes of a stack, while they start.

The kernel's window between two programs is some microseconds long, so what /proc shows in it is given here.
"""

import pytest

from trainstack.process import family

PID = 4711
MARKED = f"PATH=/bin\0{family.MARK}=t:1\0".encode()


def in_proc(
    monkeypatch: pytest.MonkeyPatch,
    environments: list[bytes],
    *,
    state: str = "R",
    flags: int = 0,
    code_address: int = 0,
    numbers: str = f"{PID}",
) -> list[bytes]:
    """One process, which shows the next environment at each reading; the list of those not yet read."""
    fields = [state, "1", "4711", "4711", "0", "-1", str(flags), *["0"] * 16, str(code_address), *["0"] * 26]
    files = {
        "stat": f"{PID} (a (program) {' '.join(fields)}\n".encode(),
        "status": f"Name:\ta\nNSpid:\t{numbers}\n".encode(),
    }
    monkeypatch.setattr(family, "pids", lambda: iter([PID]))
    monkeypatch.setattr(
        family, "_read", lambda _pid, name: environments.pop(0) if name == "environ" else files[name]
    )
    monkeypatch.setattr(family, "_EXEC_S", 60.0)
    return environments


def test_a_process_between_two_programs_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = in_proc(monkeypatch, [b"", b"", MARKED])
    assert family.members("t") == {PID}
    assert not unread


def test_a_process_that_started_while_its_state_was_read_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    in_proc(monkeypatch, [b"", MARKED], code_address=0x5555)
    assert family.members("t") == {PID}


@pytest.mark.parametrize(
    ("state", "flags", "code_address"),
    [("I", 0x00200000, 0), ("Z", 0, 0), ("S", 0, 1), ("S", 0, 0x5555)],
    ids=["kernel thread", "zombie", "of another user", "with an empty environment"],
)
def test_a_process_that_never_shows_variables_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, state: str, flags: int, code_address: int
) -> None:
    unread = in_proc(monkeypatch, [b"", b"", MARKED], state=state, flags=flags, code_address=code_address)
    assert family.members("t") == frozenset()
    assert unread == [MARKED]


def test_of_a_pid_namespace_only_the_first_process_is_asked_for_its_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading them waits for the process's memory, which one that forks forever keeps locked for seconds."""
    unread = in_proc(monkeypatch, [MARKED], numbers=f"{PID} 1")
    assert family.members("t") == {PID}
    assert not unread
    unread = in_proc(monkeypatch, [MARKED], numbers=f"{PID} 7")
    assert family.members("t") == frozenset()
    assert unread == [MARKED]
