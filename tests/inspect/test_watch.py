"""The end of a smoke run, and who is stopped then; plain processes play the replicas."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from trainmaster.inspect.finding import SourceLocation
from trainmaster.inspect.smoke.last_error import parse_last_error
from trainmaster.inspect.smoke.run import put_off
from trainmaster.inspect.smoke.watch import Limits, SmokeReplica, State, watch

ENDS, FAILS, SLEEPS = "pass", "raise SystemExit(3)", "import time; time.sleep(600)"
# A fifth of a processor: ten times what counts as work, and little of the time that the other tests need.
WORKS = "import time\nwhile True:\n    sum(range(300_000)); time.sleep(0.02)"
PATIENT = Limits(whole_s=120)


@pytest.fixture
def started(tmp_path: Path) -> Iterator["Starter"]:
    with ExitStack() as stack:
        yield Starter(stack, tmp_path)


class Starter:
    """Starts a chief and a worker that run one line of Python each."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack = stack
        self._folder = folder

    def __call__(self, chief: str, worker: str) -> list[SmokeReplica]:
        replicas = [
            SmokeReplica(
                role,
                [sys.executable, "-c", program],
                cwd=self._folder,
                variables={"PYTHONFAULTHANDLER": "1"},
                out=self._folder / f"{role}.out",
                err=self._folder / f"{role}.err",
            )
            for role, program in (("chief", chief), ("worker", worker))
        ]
        for replica in replicas:
            self._stack.callback(replica.end)
        return replicas


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chief", "worker", "limits", "states"),
    [
        (ENDS, FAILS, PATIENT, (State.ENDED, State.ENDED)),
        (ENDS, SLEEPS, Limits(whole_s=120, behind_chief_s=0.1), (State.ENDED, State.STOPPED)),
        (SLEEPS, FAILS, Limits(whole_s=120, after_failure_s=0.1), (State.HUNG, State.ENDED)),
        (SLEEPS, ENDS, Limits(whole_s=120, idle_s=3), (State.HUNG, State.ENDED)),
        (SLEEPS, SLEEPS, Limits(whole_s=120, idle_s=3), (State.HUNG, State.HUNG)),
        (WORKS, ENDS, Limits(whole_s=5, idle_s=4), (State.BUSY, State.ENDED)),
    ],
    ids=["both end", "chief first", "after a failure", "nothing to do", "both wait", "at work"],
)
def test_the_end_of_each_replica_is_reported_and_none_keeps_running(
    chief: str, worker: str, limits: Limits, states: tuple[State, State], started: Starter
) -> None:
    replicas = started(chief, worker)
    found = watch(replicas, limits)
    assert (found["chief"], found["worker"]) == states
    assert all(replica.poll() is not None for replica in replicas)


def test_statuses_are_those_of_the_programs(started: Starter) -> None:
    replicas = started(FAILS, "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    watch(replicas, PATIENT)
    assert [replica.poll() for replica in replicas] == [3, -15]


def test_of_a_traceback_the_programs_own_innermost_line_is_named(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import json\n\njson.loads('{')  # noqa\n")
    text = f"""WARNING: of something else
Traceback (most recent call last):
  File "{program}", line 3, in <module>
    json.loads('{{')
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
json.decoder.JSONDecodeError: Expecting property name {{{{node a/b}}}} enclosed
"""
    said = parse_last_error(text, tmp_path)
    assert said.text == "json.decoder.JSONDecodeError: Expecting property name enclosed"
    assert said.place == SourceLocation(path=str(program), line=3)
    assert said.code == "json.loads('{')"


RAISED = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    model.fit(data)
ValueError: Attempt to convert a value (PerReplica:{
  0: <tf.Tensor: shape=(2, 2)>
}) with an unsupported type
"""


OWN = "ValueError: Attempt to convert a value (PerReplica:{"
DIED = "Fatal Python error: Segmentation fault"
COLLECTIVE = """E0000 00:00:1795305487.389648   21879 base_collective_executor.cc:252] StartAbort UNAVAILABLE
:UNKNOWN:Error received from peer  {grpc_message:last error: UNKNOWN: Connection refused}
"""
IGNORED = """Exception ignored in: <function AtomicFunction.__del__ at 0x7f>
Traceback (most recent call last):
  File "atomic_function.py", line 291, in __del__
TypeError: 'NoneType' object is not subscriptable
"""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (RAISED + COLLECTIVE, OWN),
        (RAISED + IGNORED, OWN),
        (RAISED.replace("ValueError", "done\nERROR:tensorflow:last error: lost\nValueError"), OWN),
        (f"{RAISED}usage: train.py [-h]\ntrain.py: error: no --data_dir\n", "train.py: error: no --data_dir"),
        (f"{RAISED}{DIED}\n", DIED),
        (f"{RAISED.partition('ValueError')[0]}{DIED}\n", DIED),
    ],
    ids=["a runtime", "a destructor", "a thread in between", "a last word", "a crash", "a crash in between"],
)
def test_what_others_write_beside_a_traceback_is_not_the_error_and_a_last_word_is(
    tmp_path: Path, text: str, error: str
) -> None:
    assert parse_last_error(text, tmp_path).text == error


def test_a_signal_during_the_start_of_replicas_is_handled_once_all_are_known() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _frame: heard.append(number))
    try:
        with put_off(signal.SIGUSR1):
            os.kill(os.getpid(), signal.SIGUSR1)
            assert heard == []
        assert heard == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_of_the_stacks_of_an_aborted_process_the_main_threads_is_named(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import threading\nwait()\nmain()\n")
    text = f"""Fatal Python error: Aborted

Thread 0x00007f0000000001 (most recent call first):
  File "{program}", line 1 in run
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Current thread 0x00007f0000000002 (most recent call first):
  File "/usr/lib/python3.11/socket.py", line 294 in accept
  File "{program}", line 2 in main
  File "{program}", line 3 in <module>
"""
    assert parse_last_error(text, tmp_path).place == SourceLocation(path=str(program), line=2)
