"""The run that a file on this machine means once a file of its name in another folder was submitted, too."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from tests.client.runs.rows import row, write_row
from tests.client.served import Served, run_record
from trainmaster.client.runs.origin import LocalFile, header_of


def text_of(model: str, more: str = "") -> str:
    return f"model_name: {model}\ncluster: {{chief: {{machine: n1-standard-4}}}}\n{more}"


def write_file(served: Served, folder: str, text: str) -> str:
    path = served.folder / folder / "request.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return f"{folder}/request.yaml"


def start(served: Served, number: int, model: str, text: str, state: str = "running") -> str:
    """The id of the run that this text started, uploaded as request.yaml in this hour."""
    run_id = f"request-20260301t{number:02}0000-{number:010x}"
    name = "requests/request.yaml"
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    document: dict[str, Any] = run_record(run_id=run_id, state=state)
    document["source"] |= {"object_name": name, "event_time": f"2026-03-01T{number:02}:00:00Z"}
    document["request"]["model_name"] = model
    document["request"]["original"]["uri"] = f"gs://trainmaster-local-ledger/submitted/{sha256}.json"
    if state == "running":
        for key in ("model", "completion"):
            del document[key]
        served.write("ledger", f"active/{run_id}", {})
    served.write("ledger", f"submitted/{sha256}.json", {"text": text})
    served.write("ledger", f"runs/{run_id}.json", document)
    write_row(served, replace(row(60 * number, model_name=model), run_id=run_id))
    status = {"schema": "drop_status.v1", "dropped_name": name, "state": state, "run_id": run_id}
    served.write("ledger", f"status/{name}.json", status)
    return run_id


@pytest.fixture
def two(served: Served) -> tuple[str, str]:
    """The runs of a/request.yaml and, later, of b/request.yaml."""
    texts = text_of("model-a"), text_of("model-b")
    for folder, text in zip("ab", texts, strict=True):
        write_file(served, folder, text)
    return start(served, 1, "model-a", texts[0], "succeeded"), start(served, 2, "model-b", texts[1])


@pytest.mark.parametrize("absolute", [False, True])
def test_cancel_ends_no_run_of_a_file_in_another_folder(
    served: Served, two: tuple[str, str], absolute: bool
) -> None:
    file = f"{served.folder}/a/request.yaml" if absolute else "a/request.yaml"
    done = served.trainmaster("cancel", file)
    assert (done.status, done.out) == (0, f"{two[0]}\n")
    assert done.err == (
        f"{two[0]} is the run of {file}. Another request.yaml, or another version of it, started {two[1]} later.\n"
        f"{two[0]} has already ended: succeeded.\n"
    )


def test_status_shows_the_run_of_the_file_and_not_the_latest_of_its_name(
    served: Served, two: tuple[str, str]
) -> None:
    assert served.trainmaster("status", "a/request.yaml", "-o", "name").out == f"{two[0]}\n"
    latest = served.trainmaster("status", "b/request.yaml", "-o", "name")
    assert (latest.out, latest.err) == (f"{two[1]}\n", "")


def test_a_file_that_was_edited_since_means_the_latest_run_of_its_model_with_a_note(
    served: Served, two: tuple[str, str]
) -> None:
    write_file(served, "a", text_of("model-a", "args: [--epochs=3]\n"))
    done = served.trainmaster("status", "a/request.yaml", "-o", "name")
    assert (done.status, done.out) == (0, f"{two[0]}\n")
    assert done.err == (
        f"a/request.yaml differs from the request of {two[0]}: it was edited since, or another request.yaml "
        "started that run.\n"
    )


DIFFERS = (
    "b/request.yaml differs from each request that a file of this name has started: it was edited since, or "
    "it is another file. Name the run by its id"
)
OTHER_MODEL = (
    "c/request.yaml has started no known run. It has the model 'model-c', and the runs of files named "
    "'request.yaml' have others"
)
BY_ID = "Name one of them by its id, or submit the file: trainmaster submit c/request.yaml\n"


@pytest.mark.parametrize(
    ("verb", "folder", "status", "said", "repair"),
    [
        *((verb, "b", 2, DIFFERS, "") for verb in ("cancel", "again")),
        *((verb, "c", 3, OTHER_MODEL, BY_ID) for verb in ("status", "why", "logs", "download", "wait")),
    ],
)
def test_a_file_that_started_no_run_is_refused_with_those_of_its_name(
    served: Served, two: tuple[str, str], verb: str, folder: str, status: int, said: str, repair: str
) -> None:
    """One that was edited since by verbs that change something, one of another model by all."""
    write_file(served, folder, text_of(f"model-{folder}", "args: [--epochs=3]\n"))
    done = served.trainmaster(verb, f"{folder}/request.yaml")
    assert (done.status, done.out) == (status, "")
    assert done.err == f"Error: {said}:\n  {two[1]} (model-b)\n  {two[0]} (model-a)\n{repair}"


def test_a_file_that_cannot_be_read_as_yaml_means_the_latest_run_of_its_name(
    served: Served, two: tuple[str, str]
) -> None:
    write_file(served, "b", "model_name: [")
    done = served.trainmaster("status", "b/request.yaml", "-o", "name")
    assert (done.status, done.out) == (0, f"{two[1]}\n")
    assert "differs from the request" in done.err


def test_the_name_alone_means_the_latest_run_where_no_file_has_it(
    served: Served, two: tuple[str, str]
) -> None:
    for name in ("request.yaml", "requests/request.yaml"):
        done = served.trainmaster("status", name, "-o", "name")
        assert (done.out, done.err) == (f"{two[1]}\n", "")


@pytest.mark.parametrize(
    "sent",
    [
        "model_name: m\nscript: {file: train.py}\n",
        "script:\n  file: train.py\n  archive: gs://data/scripts/1.tar.gz\nmodel_name: m\n",
        header_of(b"model_name: m\nscript: {file: train.py}\n") + "model_name: other\n",
    ],
)
def test_a_file_is_the_source_of_what_submit_made_of_it(sent: str) -> None:
    assert LocalFile(path="", content=b"model_name: m\nscript: {file: train.py}\n").is_source_of(sent)


@pytest.mark.parametrize(
    "sent", ["model_name: m\n", "model_name: m\nscript: {file: other.py}\n", header_of(b"other"), "x: ["]
)
def test_a_file_is_not_the_source_of_another_request(sent: str) -> None:
    assert not LocalFile(path="", content=b"model_name: m\nscript: {file: train.py}\n").is_source_of(sent)
