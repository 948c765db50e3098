"""A state folder is private, a damaged file of it is named, and a full disk stops nothing for good."""

import asyncio
import errno
import json
import shlex
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.requests import Request

from trainstack.json_bodies import MAX_DEPTH, json_value, refuse_disk_full
from trainstack.logging.structured import entry_from_line
from trainstack.sqlite import Database, DiskFullError, StateDamagedError
from trainstack.stack.state import StateFolder

SCHEMA = "CREATE TABLE IF NOT EXISTS rows (body TEXT NOT NULL);"
LONG = "x" * 100_000


def set_pages(database: Database, count: int) -> None:
    """SQLite then finds no room, in the code that a full file system reaches, too."""
    database.row(f"PRAGMA max_page_count = {count}")


@pytest.fixture
def full(tmp_path: Path) -> Database:
    database = Database(tmp_path / "rows.db", SCHEMA)
    set_pages(database, 8)
    return database


def insert(database: Database) -> None:
    database.execute("INSERT INTO rows VALUES (?)", (LONG,))


def insert_in_transaction(database: Database) -> None:
    with database.transaction():
        database.execute("INSERT INTO rows VALUES (?)", ("small",))
        insert(database)


@pytest.mark.parametrize("write", [insert, insert_in_transaction])
def test_a_write_without_room_changes_nothing_and_succeeds_once_there_is_room(
    full: Database, write: Callable[[Database], None], tmp_path: Path
) -> None:
    with pytest.raises(DiskFullError, match=r"rows\.db") as fault:
        write(full)
    assert fault.value.errno == errno.ENOSPC
    assert full.rows("SELECT * FROM rows") == []
    set_pages(full, 10_000)
    write(full)
    full.close()
    reopened = Database(tmp_path / "rows.db", SCHEMA)
    assert (LONG,) in reopened.rows("SELECT * FROM rows")
    reopened.close()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_answered_with_507(code: int) -> None:
    answer = asyncio.run(refuse_disk_full(Request({"type": "http"}), OSError(code, "no space", "/state/a")))
    assert answer.status_code == 507
    assert "without a restart" in json.loads(bytes(answer.body))["error"]["message"]


def test_any_other_failure_of_a_file_is_not_taken_for_a_full_disk() -> None:
    with pytest.raises(PermissionError):
        asyncio.run(refuse_disk_full(Request({"type": "http"}), PermissionError(errno.EACCES, "denied")))


@pytest.mark.parametrize("damage", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_file_is_named_with_the_repair(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "a b.db"
    Database(path, SCHEMA).close()
    path.write_bytes(damage)
    with pytest.raises(StateDamagedError) as refusal:
        Database(path, SCHEMA)
    assert f"mv {shlex.quote(str(path))} {shlex.quote(str(path))}.damaged" in str(refusal.value)


def test_only_its_owner_may_enter_a_state_folder_even_one_that_was_open(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    StateFolder(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_json_nested_too_deeply_is_refused_by_services_and_kept_as_text_in_logs(pair: str) -> None:
    begin, end = ('{"a":', "}") if pair == "{}" else ("[", "]")
    deepest = begin * (MAX_DEPTH - 1) + pair + end * (MAX_DEPTH - 1)
    assert json_value(deepest.encode()) == json.loads(deepest)
    for depth in (MAX_DEPTH, 900, 100_000):
        with pytest.raises(ValueError, match="nested"):
            json_value((begin * depth + pair + end * depth).encode())
        line = '{"b":' + begin * depth + pair + end * depth + "}"
        assert entry_from_line(line, "stdout")["textPayload"] == line
