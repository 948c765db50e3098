"""The replica that failed first, its error and its last lines, from the end of a job's log."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.narrowing import present
from trainmaster.orchestrator.core.completion.error_repair import as_sentence
from trainmaster.orchestrator.core.completion.explanation import (
    LAST_LINES,
    LINE_MAX_CHARS,
    LOGGED_ELSEWHERE,
    OF_ONE_END,
    SERVICE,
    LogEntry,
    first_failure,
    has_arrived,
)
from trainmaster.orchestrator.core.completion.last_error import CHAINED
from trainmaster.orchestrator.core.runs.job import Failure

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
CHIEF, WORKER = "workerpool0-0", "workerpool1-0"
HYDRA_ENDS = "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace."
USAGE = "usage: train.py [-h] [--epochs EPOCHS]\ntrain.py: error: unrecognized arguments: --lr=0.1"
LOST = "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: Socket closed"


def wrote(replica: str, text: str, *, after_s: float = 0) -> list[LogEntry]:
    """One entry for each line, as a replica's standard error is logged."""
    return [
        LogEntry(
            task=replica,
            at=START + timedelta(seconds=after_s, microseconds=number),
            insert_id=f"{replica}-{after_s}-{number:03}",
            text=line,
        )
        for number, line in enumerate(text.split("\n"))
    ]


def raised(error: str) -> str:
    return f'Traceback (most recent call last):\n  File "/app/train.py", line 7, in <module>\n    main()\n{error}'


def exited(replica: str, status: int) -> str:
    return f"The replica {replica} exited with a non-zero status of {status}. To find out more see https://…"


def found(entries: Sequence[LogEntry], words: str = "") -> Failure:
    return present(first_failure(entries, words))


def test_the_end_of_a_traceback_is_the_reason() -> None:
    noise = "2026-03-01 12:00:00 I tensorflow/core: this is not an error\n"
    failure = found(wrote(CHIEF, noise + raised("ValueError: no data in gs://b/x")), exited(CHIEF, 1))
    assert (failure.message, failure.replica) == ("ValueError: no data in gs://b/x", CHIEF)
    assert failure.last_lines == tuple(raised("ValueError: no data in gs://b/x").split("\n"))


def test_a_syntax_error_of_the_program_itself_keeps_its_file_line_and_caret() -> None:
    shown = '  File "/app/train.py", line 3\n    x = = 1\n        ^\nSyntaxError: invalid syntax'
    failure = found(wrote(CHIEF, f"starting\n{shown}"), exited(CHIEF, 1))
    assert failure.message == "SyntaxError: invalid syntax"
    assert failure.last_lines == tuple(shown.split("\n"))


MISSING = "ModuleNotFoundError: No module named '{}'"
NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: '{}'"
NO_RANK = "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set"
NO_OTHERS = ". torch.distributed finds no other process: "
IN_THE_IMAGE = ". The image lacks it: "
BESIDE_THE_SCRIPT = ". It is not installed: add "
AS_A_PATH = ". Functions for plain files need the path with /gcs/ in place of gs://, and make no folders"


@pytest.mark.parametrize(
    ("text", "runs_script", "repair"),
    [
        (MISSING.format("sklearn.svm"), False, f"{IN_THE_IMAGE}add `RUN pip install scikit-learn` to the Dockerfile"),
        (
            MISSING.format("tqdm"),
            False,
            f"{IN_THE_IMAGE}install its package with RUN, or COPY it if it is your own, in the Dockerfile",
        ),
        (MISSING.format("x" * 150), False, ""),
        (MISSING.format("sklearn.svm"), True, f"{BESIDE_THE_SCRIPT}`scikit-learn` where the project's packages are listed, else to requirements.txt beside the script"),
        (
            MISSING.format("tqdm"),
            True,
            f"{BESIDE_THE_SCRIPT}its package where the project's packages are listed, else to requirements.txt beside the script, or put the module there if it is your own",
        ),
        (NO_RANK, True, f"{NO_OTHERS}start it with script.launcher: torchrun, or --launcher torchrun"),
        (NO_RANK, False, f"{NO_OTHERS}start it with `python -m trainer.launch --framework torch -- torchrun` (docs/how-to/frameworks.md)"),
        (NO_FILE.format("gs://models/m/model.pkl"), False, AS_A_PATH),
        (NO_FILE.format("gs:/models/m/model.pkl"), False, AS_A_PATH),
    ],
)  # fmt: skip
def test_an_error_with_a_known_cause_is_reported_with_its_repair(
    text: str, runs_script: bool, repair: str
) -> None:
    entries = wrote(CHIEF, raised(text))
    failure = present(first_failure(entries, exited(CHIEF, 1), runs_script=runs_script))
    assert failure.message == text + repair


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("KeyError: 'label'", "KeyError: 'label'."),
        ("ValueError: no data.", "ValueError: no data."),
        (
            "NameError: name 'x' is not defined. Did you mean: 'y'?",
            "NameError: name 'x' is not defined. Did you mean: 'y'?",
        ),
    ],
)
def test_a_sentence_has_one_mark_at_its_end(text: str, sentence: str) -> None:
    assert as_sentence(text) == sentence


@pytest.mark.parametrize(
    "body",
    [
        '{"error":{"code":404,"message":"No such object: data/a \\"b\\".csv","errors":[]}}',
        """No such object: data/a "b".csv: ('Request failed with status code', 404, 'Expected one of', 200)""",
    ],
    ids=["JSON", "text"],
)
def test_an_error_response_is_quoted_without_its_address_and_the_rest_of_its_body(body: str) -> None:
    address = f"https://storage.googleapis.com/download/storage/v1/b/data/o/{'a' * 200}?alt=media"
    text = f"google.api_core.exceptions.NotFound: 404 GET {address}: {body}"
    message = found(wrote(CHIEF, raised(text)), exited(CHIEF, 1)).message
    assert message == 'google.api_core.exceptions.NotFound: 404 No such object: data/a "b".csv'


def test_entries_in_any_order_tell_the_same() -> None:
    entries = wrote(CHIEF, raised("ValueError: a")) + wrote(WORKER, raised(LOST), after_s=1)
    shuffled = random.Random(7).sample(entries, len(entries))
    assert found(shuffled, exited(CHIEF, 1)) == found(entries, exited(CHIEF, 1))


@pytest.mark.parametrize("words", ["", exited(CHIEF, 1), exited(WORKER, 1)])
def test_of_replicas_that_failed_the_first_one_counts_whichever_the_service_names(words: str) -> None:
    entries = wrote(WORKER, raised("KeyError: 'label'")) + wrote(CHIEF, raised("RuntimeError: b"), after_s=1)
    assert (found(entries, words).replica, found(entries, words).message) == (WORKER, "KeyError: 'label'")


@pytest.mark.parametrize("words", ["", exited(CHIEF, 1)])
def test_a_replica_that_lost_its_peer_is_not_the_one_that_failed_first(words: str) -> None:
    entries = wrote(CHIEF, raised(LOST)) + wrote(WORKER, raised("ValueError: nan"), after_s=5)
    assert found(entries, words).replica == WORKER


def test_where_every_replica_tells_of_a_lost_peer_the_services_word_counts() -> None:
    entries = wrote(CHIEF, raised(LOST)) + wrote(WORKER, raised(LOST), after_s=1)
    assert found(entries, exited(WORKER, 134)).replica == WORKER
    assert found(entries).replica == CHIEF


def test_a_killed_replica_is_the_first_though_only_its_peers_wrote_an_error() -> None:
    entries = wrote(CHIEF, "step 3: loss 0.5") + wrote(WORKER, raised("RuntimeError: no answer"), after_s=1)
    words = f"The replica {CHIEF} ran out of memory and exited with a non-zero status of 137(SIGKILL)."
    killed = Failure(
        message="killed (SIGKILL): it ran out of memory", replica=CHIEF, last_lines=("step 3: loss 0.5",)
    )
    assert found(entries, words) == killed
    assert first_failure(wrote(WORKER, raised("RuntimeError: no answer")), words) is None


def test_a_killed_replica_says_how_often_it_was_started_again() -> None:
    words = f"The replica {CHIEF} ran out of memory and exited with a non-zero status of 137(SIGKILL)."
    again = [
        entry
        for number in range(23)
        for entry in wrote(
            SERVICE, f"The replica {CHIEF} exited with status 137 and is restarted.", after_s=number
        )
    ]
    service = wrote(SERVICE, f"{words}\nJob failed.", after_s=30)
    assert found([*again, *service], words) == Failure(
        message="killed (SIGKILL): it ran out of memory, after at least 23 restarts", replica=CHIEF
    )


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        ("137(SIGKILL)", "killed (SIGKILL), usually because it ran out of memory"),
        ("139", "crashed (SIGSEGV): native code accessed memory that is not its own"),
        ("135", "crashed (SIGBUS), usually because /dev/shm or the disk was full"),
    ],
)
def test_the_signal_that_ended_a_replica_is_named_though_it_wrote_nothing(status: str, meaning: str) -> None:
    words = f"The replica {CHIEF} exited with a non-zero status of {status}."
    service = wrote(SERVICE, f"{words}\nJob failed.", after_s=4)
    assert found(service, words) == Failure(message=meaning, replica=CHIEF)
    lines = ("step 3: error: none yet",)
    assert found([*wrote(CHIEF, lines[0]), *service], words) == Failure(
        message=meaning, replica=CHIEF, last_lines=lines
    )
    assert first_failure([], words) is None


LATER_S = (OF_ONE_END + timedelta(minutes=1)).total_seconds()
NATIVE = "failed call to cuInit: INTERNAL: CUDA error: x\nThe model does not fit the data"
OF_TORCHRUN = (
    'Traceback (most recent call last):\n  File "/v/site-packages/torch/distributed/run.py", line 1032, in <module>\n'
    "    main()\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED"
)
NO_DATA = NO_FILE.format("/data/train.csv")
FROM, DURING = CHAINED
CHAIN = "\n".join(
    (raised(NO_DATA), "", FROM, "", raised("OSError: a"), "", DURING, "", raised("RuntimeError: b"))
)
IGNORED = "Exception ignored in: <function Pool.__del__>\n" + raised("AttributeError: 'NoneType'")


@pytest.mark.parametrize(
    ("entries", "words", "message"),
    [
        pytest.param(
            wrote(CHIEF, "Fatal Python error: Segmentation fault"),
            exited(CHIEF, 139),
            "Fatal Python error: Segmentation fault",
            id="the last words of a crashed interpreter say more than the signal",
        ),
        pytest.param(
            wrote(WORKER, raised("OSError: a")) + wrote(CHIEF, raised("ValueError: b"), after_s=LATER_S),
            exited(CHIEF, 1),
            "ValueError: b",
            id="an error of an earlier start of the job is not the reason",
        ),
        pytest.param(
            wrote(CHIEF, raised("TimeoutError: once more")) + wrote(CHIEF, "no data", after_s=LATER_S),
            exited(CHIEF, 1),
            "its last line was: 'no data'",
            id="an error that the replica survived is not the reason",
        ),
        pytest.param(
            wrote(CHIEF, f"{USAGE}\n{raised('ValueError: a')}"),
            "",
            "ValueError: a",
            id="usage before a traceback is not the reason",
        ),
        *(
            pytest.param(
                wrote(CHIEF, f"{prefix} cuda_platform.cc:52] {NATIVE}"),
                exited(CHIEF, 2),
                "its last line was: 'The model does not fit the data'",
                id="an error that native code logs is not the reason",
            )
            for prefix in (
                "E0000 00:00:1795485741.331835   21101",
                "2026-03-01 12:00:00.331835: E external/xla/",
            )
        ),
        pytest.param(
            wrote(CHIEF, "one\ntwo") + wrote("service", exited(CHIEF, 3), after_s=1),
            "",
            "its last line was: 'two'",
            id="the service's own line names the replica where the job has no error",
        ),
        pytest.param(
            wrote(CHIEF, f"{raised('ValueError: a')}\n{IGNORED}"),
            "",
            "ValueError: a",
            id="an exception that Python ignored after the error is not the reason",
        ),
        pytest.param(
            wrote(CHIEF, "\n".join(f"[rank0]: {line}" for line in raised("KeyError: 'price'").splitlines()))
            + wrote(CHIEF, OF_TORCHRUN),
            exited(CHIEF, 1),
            "KeyError: 'price'",
            id="of a process that a launcher started its own error counts",
        ),
        pytest.param(
            wrote(CHIEF, "\n".join((raised("KeyError: 'a'"), "", DURING, "", raised("ValueError: b")))),
            "",
            "ValueError: b, while handling KeyError: 'a'",
            id="an exception is named with the one that was being handled",
        ),
        pytest.param(
            wrote(CHIEF, CHAIN),
            "",
            f"RuntimeError: b, caused by {NO_DATA}",
            id="of a chain the first exception is named",
        ),
        pytest.param(
            wrote(CHIEF, raised("ZeroDivisionError: division by zero") + "\nskipped it\nno rows left"),
            exited(CHIEF, 3),
            "exited with status 3, 2 lines after it wrote ZeroDivisionError: division by zero",
            id="an error that the program caught is only a hint",
        ),
        pytest.param(
            wrote(CHIEF, raised("ZeroDivisionError: division by zero")),
            exited(CHIEF, 3),
            "ZeroDivisionError: division by zero",
            id="an error in the last line is the reason whatever the exit status is",
        ),
        pytest.param(
            wrote(CHIEF, OF_TORCHRUN),
            exited(CHIEF, 1),
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
            id="a launcher's error counts where its process shows none",
        ),
    ],
)
def test_the_reason_is_the_error_that_ended_the_replica(
    entries: Sequence[LogEntry], words: str, message: str
) -> None:
    assert found(entries, words).message == message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (USAGE, "train.py: error: unrecognized arguments: --lr=0.1"),
        ("Usage: train.py [OPTIONS]\n\nError: No such option: --lr", "Error: No such option: --lr"),
        (
            "FATAL Flags parsing error:\n  Unknown command line flag 'lr'\nPass --help",
            "FATAL Flags parsing error: Unknown command line flag 'lr'",
        ),
        (
            "Usage: t.py [OPTIONS] DATA\nTry 't.py --help' for help.\n╭─ Error ─────────╮\n│ No such option: --lr   │\n╰──╯",
            "Error: No such option: --lr",
        ),
        ("ERROR: Could not consume arg: --lr\nUsage: f.py x -", "ERROR: Could not consume arg: --lr"),
        (
            f"Could not override 'lr'.\nTo append use +lr=3\nKey 'lr' is not in struct\n  full_key: lr\n{HYDRA_ENDS}",
            "Could not override 'lr'.",
        ),
        (
            f"mismatched input '=' expecting <EOF>\nSee https://hydra.cc/docs/1.2\n{HYDRA_ENDS}",
            "mismatched input '=' expecting <EOF>",
        ),
    ],
    ids=["argparse", "click", "absl", "typer", "fire", "hydra", "hydra's grammar"],
)
def test_a_program_that_refuses_its_arguments_is_told_as_that(text: str, reason: str) -> None:
    for words in ("", exited(CHIEF, 2)):
        failure = found(wrote(CHIEF, "a warning of something\n" + text), words)
        assert failure.message == f"the program rejected its arguments: {reason}"
        assert failure.last_lines == tuple(line for line in text.split("\n") if line)


def test_a_program_whose_errors_went_to_another_log_is_said_to_have_sent_them_there() -> None:
    for farewell in (
        "Failed to send 1 pending logs.",
        "Sent all pending logs.",
        "CloudLoggingHandler shutting down, cannot send logs entries to Cloud Logging due to inconsistent threading",
    ):
        failure = found(wrote(CHIEF, f"epoch 1\n{farewell}"), exited(CHIEF, 1))
        assert failure.message == LOGGED_ELSEWHERE
    known = found(wrote(CHIEF, f"{raised('ValueError: a')}\nSent all pending logs."), exited(CHIEF, 1))
    assert known.message == "ValueError: a"


def test_a_traceback_before_hydras_last_line_is_no_refusal_of_arguments() -> None:
    text = f"{raised('ValueError: a')}\n{HYDRA_ENDS}"
    assert found(wrote(CHIEF, text), exited(CHIEF, 1)).message == "ValueError: a"


def test_without_an_error_the_last_lines_of_the_named_replica_are_given() -> None:
    entries = wrote(CHIEF, "one\ntwo") + wrote(WORKER, "three", after_s=1)
    assert found(entries, exited(CHIEF, 3)) == Failure(
        message="its last line was: 'two'", replica=CHIEF, last_lines=("one", "two")
    )


def test_lines_that_name_no_end_are_not_taken_for_one() -> None:
    """Everything on standard error is logged as an error, for example what a runtime says at its start."""
    assert first_failure(wrote(CHIEF, "E0000 cuda_dnn.cc:8310] error: no factory registered"), "") is None
    assert first_failure([], exited(CHIEF, 1)) is None


def test_a_traceback_in_one_entry_and_entries_with_progress_bars_are_read_as_lines() -> None:
    bar = "10%|#\r100%|##########"
    entries = [
        LogEntry(task=CHIEF, at=START, insert_id="1", text=f"{bar}\r\n{raised('ValueError: a')}\n"),
        LogEntry(task=CHIEF, at=START, insert_id="2", text="bye"),
    ]
    failure = found(entries, exited(CHIEF, 1))
    assert failure.message == "ValueError: a"
    assert failure.last_lines == (*raised("ValueError: a").split("\n"), "bye")


def test_control_characters_and_colours_are_removed() -> None:
    failure = found(wrote(CHIEF, raised("\x1b[31mValueError\x1b[0m: a\x00\x07\u202eb")), exited(CHIEF, 1))
    assert failure.message == "ValueError: a   b"
    assert all(line.isprintable() for line in present(failure.last_lines))


def test_huge_lines_and_many_lines_are_cut() -> None:
    frames = "\n".join(f'  File "/app/deep.py", line {number}, in f' for number in range(1000))
    text = f"Traceback (most recent call last):\n{frames}\nRecursionError: {'x' * 200_000}"
    failure = found(wrote(CHIEF, text), exited(CHIEF, 1))
    assert failure.message.startswith("RecursionError: xxx")
    assert len(failure.message) <= LINE_MAX_CHARS
    assert failure.last_lines is not None
    assert len(failure.last_lines) <= LAST_LINES
    assert max(map(len, failure.last_lines)) <= LINE_MAX_CHARS
    assert failure.last_lines[-1].startswith("RecursionError")


PIECES = (
    *CHAINED,
    "Traceback (most recent call last):",
    "usage: a",
    "error: b",
    "ValueError: c",
    '  File "d", line 1, in e',
)
TEXTS = st.lists(st.one_of(st.sampled_from((*PIECES, "Exception ignored in: f", "\r", "\n")), st.text())).map(
    "".join
)


@given(
    texts=st.lists(
        st.tuples(st.sampled_from((CHIEF, WORKER, "service", "", "a\x1bb")), TEXTS, st.integers(0, 1000))
    ),
    words=st.sampled_from(("", exited(CHIEF, 1), exited(WORKER, 137))),
)
def test_whatever_replicas_write_the_answer_is_bounded_and_printable(
    texts: list[tuple[str, str, int]], words: str
) -> None:
    entries = [
        LogEntry(task=task, at=START + timedelta(seconds=second), insert_id=str(number), text=text)
        for number, (task, text, second) in enumerate(texts)
    ]
    failure = first_failure(entries, words)
    if failure is not None:
        assert failure.replica in (CHIEF, WORKER)
        assert failure.last_lines is not None
        assert len(failure.last_lines) <= LAST_LINES
        for line in (failure.message, *failure.last_lines):
            assert line.isprintable()
            assert len(line) <= LINE_MAX_CHARS


def test_the_log_has_arrived_with_the_services_last_line() -> None:
    assert not has_arrived(wrote(CHIEF, "Job failed."))
    assert not has_arrived(wrote("service", "Tearing down training program."))
    assert has_arrived(wrote("service", "Job failed."))
