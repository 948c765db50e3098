"""`from trainmaster import connect` without a stack's functions: bad input, checks and plans, and what it imports."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.runs.rows import row, write_row
from tests.client.served import Served, served_context
from trainmaster import Connection, NotFound, RequestRefused, connect
from trainmaster.client.context import NoContext, UnknownContext
from trainmaster.client.errors import ClientRefused

DOCUMENT = {
    "model_name": "own",
    "script": {"file": "train.py"},
    "cluster": {"chief": {"machine": "n1-standard-4"}},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_context(tmp_path_factory.mktemp("served"), publishes=True) as served:
        (served.folder / "request.yaml").write_text(json.dumps(DOCUMENT))
        (served.folder / "train.py").write_text("print('trains')\n")
        for number in range(3):
            write_row(served, row(number))
        yield served


@pytest.fixture
def tm(served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Connection]:
    monkeypatch.chdir(served.folder)
    monkeypatch.setenv("TRAINMASTER_CONFIG", str(tmp_path))
    monkeypatch.delenv("TRAINMASTER_CONTEXT", raising=False)
    with connect() as connection:
        yield connection


def sent(served: Served) -> list[str]:
    buckets = (served.clients.context.inbox_bucket, served.clients.context.data_bucket)
    return [blob.name for bucket in buckets for blob in served.clients.storage.list_blobs(bucket)]


def scripted(file: str) -> dict[str, object]:
    return {**DOCUMENT, "script": {"file": file}}


def pipe() -> str:
    if not Path("pipe").exists():
        os.mkfifo("pipe")
    return "pipe"


def handle(tm: Connection) -> Any:  # Any: as below
    return next(iter(tm.runs()))


# Any: what a type checker would refuse
BAD: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "no request": (lambda tm: tm.submit(), ClientRefused, "found None"),
    "a number": (lambda tm: tm.submit(5), ClientRefused, "found 5"),
    "no file": (lambda tm: tm.submit("gone.yaml"), ClientRefused, "gone.yaml: No such file"),
    "standard input": (lambda tm: tm.check("-"), ClientRefused, "./-: No such file"),
    "a script as a request": (lambda tm: tm.submit("train.py"), ClientRefused, "submit --script train.py"),
    "no script": (lambda tm: tm.submit(script="trian.py"), ClientRefused, "Did you mean 'train.py'"),
    "no JSON": (lambda tm: tm.submit({"env": {1, 2}}), ClientRefused, "what JSON can hold"),
    "half a character": (lambda tm: tm.submit({"a": "\ud800"}), ClientRefused, "what JSON can hold"),
    "text as a list": (lambda tm: tm.submit(DOCUMENT, args="--epochs=3"), ClientRefused, "args: expected a list"),
    "a list as a mapping": (lambda tm: tm.submit(DOCUMENT, set=["a=1"]), ClientRefused, "set: expected a mapping"),
    "a wrong path": (lambda tm: tm.submit(DOCUMENT, set={"a b": 1}), ClientRefused, "not KEY=VALUE"),
    "one value as several": (lambda tm: tm.submit(DOCUMENT, matrix={"lr": 3}), RequestRefused, "expected a list"),
    "an empty key": (lambda tm: tm.submit(DOCUMENT, key=""), ClientRefused, "key: expected a text of 1 to 1000 characters, found ''"),
    "half a character as a key": (lambda tm: tm.submit(DOCUMENT, key="\ud800"), ClientRefused, "key: expected a text"),
    "half a character in a path": (lambda tm: tm.submit(DOCUMENT, set={"env.\ud800": 1}), ClientRefused, "set: expected a"),
    "a NUL in a model": (lambda tm: tm.runs(model="a\0"), ClientRefused, r"found 'a\x00'"),
    "an empty machine": (lambda tm: tm.submit(DOCUMENT, machine=""), ClientRefused, "machine: expected a text"),
    "a long name": (lambda tm: tm.run("x" * 10**6), ClientRefused, "name: expected a text of 1 to 1000"),
    "bytes as a script": (lambda tm: tm.submit(script=b"train.py"), ClientRefused, "found b'train.py'"),
    "a number as arguments": (lambda tm: tm.submit(DOCUMENT, args=3), ClientRefused, "args: expected a list"),
    "bytes among arguments": (lambda tm: tm.submit(DOCUMENT, args=[b"a"]), ClientRefused, "what JSON can hold"),
    "a generator as workers": (lambda tm: tm.submit(DOCUMENT, workers=iter("a")), ClientRefused, "what JSON can hold"),
    "a folder elsewhere as a script": (lambda tm: tm.submit(scripted("/usr")), RequestRefused, "$.script.file: not in the expected"),
    "too long a name of a script": (lambda tm: tm.submit(scripted("x" * 300)), ClientRefused, "The script: File name too long"),
    "a pipe without a writer": (lambda tm: tm.check(pipe()), ClientRefused, "not a regular file"),
    "NaN as a time": (lambda tm: handle(tm).wait(timeout=math.nan), ClientRefused, "timeout: expected 0 to"),
    "an option of another name": (lambda tm: tm.submit(DOCUMENT, gpus="L4:1"), TypeError, "gpus"),
    "no such machine": (lambda tm: tm.submit(DOCUMENT, machine="n1-standard-5"), RequestRefused, "n1-standard-8"),
    "no such run": (lambda tm: tm.run("gone"), NotFound, "No run, file or message 'gone'"),
    "no such champion": (lambda tm: tm.champion("gone"), NotFound, "'gone' has no champion"),
    "no such state": (lambda tm: tm.runs(state="done"), ClientRefused, "expected one of reserved"),
    "no rows": (lambda tm: tm.runs(limit=0), ClientRefused, "limit: expected 1 to 20000, found 0"),
    "no such context": (lambda _: connect("nowhere"), UnknownContext, "chosen by connect()"),
    "no stack": (lambda _: connect("local:/nowhere"), NoContext, "trainmaster up"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_refusal_and_changes_nothing(
    case: str, served: Served, tm: Connection
) -> None:
    call, kind, words = BAD[case]
    with pytest.raises(kind) as refused:
        call(tm)
    assert words in str(refused.value)
    assert sent(served) == []


def test_a_refusal_has_every_fault_with_its_place(tm: Connection) -> None:
    Path("wrong.yaml").write_text(json.dumps(DOCUMENT | {"priority": "high"}, indent=1))
    with pytest.raises(RequestRefused) as refused:
        tm.submit("wrong.yaml", gpu="L5:1")
    found = {fault.path: fault.place and fault.place.line for fault in refused.value.faults}
    assert f"wrong.yaml:{found['$.priority']}:" in str(refused.value)
    assert "--gpu" in str(refused.value)


@pytest.mark.parametrize(
    "request_", ["request.yaml", Path("request.yaml"), DOCUMENT], ids=["text", "path", "document"]
)
def test_a_request_is_checked_and_planned_as_path_and_as_document(request_: Any, tm: Connection) -> None:
    assert tm.check(request_).faults == ()
    plan = tm.plan(request_)
    assert plan.outlook is not None
    assert [job.machines for job in plan.jobs] == ["n1-standard-4"]
    assert plan.request["model_name"] == "own"


def test_runs_are_read_when_they_are_used(served: Served, tm: Connection) -> None:
    runs = tm.runs(limit=2)
    assert [run.id for run in runs] == [row(2).run_id, row(1).run_id]
    with pytest.raises(NotFound):
        _ = next(tm.runs()).state


def test_the_stack_of_another_folder_is_read_but_not_changed(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tm: Connection
) -> None:
    from trainstack.find import register_stack

    register_stack(served.folder / ".trainmaster", tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with connect() as other:
        assert list(other.runs(limit=1))
        with pytest.raises(NoContext, match="is not changed from here"):
            other.submit(DOCUMENT)
    assert sent(served) == []


def test_the_package_imports_nothing_and_its_face_no_client_of_google_before_it_is_used() -> None:
    code = (
        "import sys; before = set(sys.modules); import trainmaster; new = set(sys.modules) - before;"
        "assert new == {'trainmaster'}, new;"
        "from trainmaster import connect;"
        "slow = [name for name in sys.modules if name.startswith(('google.api_core', 'google.cloud.', 'grpc', 'requests'))];"
        "assert slow == [], slow;"
        "from trainmaster import resources;"
        "assert not hasattr(trainmaster, 'submit')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
