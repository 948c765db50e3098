"""The refusal of a used key says in what the requests differ, without their values."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.served import Served, served_context
from trainmaster.client.submission.differences import ARCHIVE_PATH, differences
from trainmaster.client.submission.pack import Packed, pack_script
from trainmaster.client.submission.send import send_script

GITIGNORE = "To leave a file out of what is sent, name it in a .gitignore."


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_context(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("print(1)\n")
    (tmp_path / "old.txt").write_text("old")
    return path


def requested(packed: Packed, **more: Any) -> dict[str, Any]:
    archive = f"gs://trainmaster-local-data/scripts/{packed.sha256}.tar.gz"
    return {"model_name": "m", "script": {"file": "train.py", "archive": archive}, **more}


def test_the_places_of_other_values_are_named(served: Served) -> None:
    before = {"model_name": "m", "args": ["--token=1", "--b"], "env": {"A": "1"}}
    after = {"model_name": "m", "args": ["--token=2", "--b"], "labels": {"x": "y"}}
    found = differences(served.clients, before, after, None)
    assert found == "It differs in $.args[0], $.labels, $.env."


def test_many_places_are_counted(served: Served) -> None:
    after = {"env": {f"V{number}": "1" for number in range(8)}}
    found = differences(served.clients, {"env": {}}, after, None)
    assert found == "It differs in $.env.V0, $.env.V1, $.env.V2, $.env.V3, $.env.V4, 3 more."


def test_the_files_of_another_script_folder_are_named(served: Served, script: Path) -> None:
    first = pack_script(script)
    send_script(served.clients, first, None)
    (script.parent / "run.log").write_text("x")
    (script.parent / "old.txt").unlink()
    script.write_text("print(2)\n")
    second = pack_script(script)
    found = differences(served.clients, requested(first), requested(second, args=["--a"]), second)
    assert found == (
        "It differs in $.args. The folder of its script differs: new run.log; changed train.py; gone old.txt. "
        f"{GITIGNORE}"
    )
    assert ARCHIVE_PATH not in found


@pytest.mark.parametrize("content", [None, b"no archive"])
def test_without_the_first_archive_only_the_folder_is_named(
    served: Served, script: Path, content: bytes | None
) -> None:
    script.write_text(f"print({content!r})\n")
    first = pack_script(script)
    if content is not None:
        name = f"scripts/{first.sha256}.tar.gz"
        served.clients.storage.bucket("trainmaster-local-data").blob(name).upload_from_string(content)
    (script.parent / "run.log").write_text("x")
    second = pack_script(script)
    found = differences(served.clients, requested(first), requested(second), second)
    assert found == f"The folder of its script differs. {GITIGNORE}"


def test_two_archives_in_other_buckets_are_not_read(served: Served, script: Path) -> None:
    packed = pack_script(script)
    elsewhere = {"model_name": "m", "script": {"file": "train.py", "archive": "gs://other/a.tar.gz"}}
    found = differences(served.clients, elsewhere, requested(packed), packed)
    assert found == f"The folder of its script differs. {GITIGNORE}"
