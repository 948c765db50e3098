"""Persists resources, each a protobuf message by its name, and links between them."""

import re
from pathlib import Path
from typing import Any

from trainstack.errors import ApiError, Status
from trainstack.project import project_number
from trainstack.sqlite import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS resources (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, parent TEXT NOT NULL, message BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS resources_by_parent ON resources (parent);
CREATE TABLE IF NOT EXISTS links (
    source TEXT NOT NULL, target TEXT NOT NULL, message BLOB NOT NULL, PRIMARY KEY (source, target)
) WITHOUT ROWID;
"""

# protobuf's generated messages are untyped, as in trainstack.jobs.resource.validation.
Message = Any


class ResourceStore(Database):
    """Resources in order of creation. Its methods take names with the project's number."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA)

    def put(self, message: Message, name: str = "") -> None:
        """Save a resource under its own name, or another one."""
        key = name or message.name
        self.execute(
            "INSERT INTO resources (name, parent, message) VALUES (?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET message = excluded.message",
            (key, key.rpartition("/")[0], message.SerializeToString()),
        )

    def find(self, kind: type[Message], name: str) -> Message | None:
        row = self.row("SELECT message FROM resources WHERE name = ?", (name,))
        return kind.FromString(row[0]) if row else None

    def get(self, kind: type[Message], name: str) -> Message:
        """Raises `ApiError`: NOT_FOUND."""
        if (found := self.find(kind, name)) is None:
            raise ApiError(Status.NOT_FOUND, f"The {kind.DESCRIPTOR.name} {name} does not exist.")
        return found

    def under(self, kind: type[Message], collection: str) -> list[Message]:
        """The resources of `projects/P/locations/L/models` and the like, newest first."""
        rows = self.rows(
            "SELECT message FROM resources WHERE parent = ? ORDER BY sequence DESC", (collection,)
        )
        return [kind.FromString(message) for (message,) in rows]

    def every(self, kind: type[Message], collection: str) -> list[Message]:
        """The resources of `persistentResources` and the like in all projects and locations, oldest first."""
        rows = self.rows(
            "SELECT message FROM resources WHERE parent LIKE ? ORDER BY sequence", (f"%/{collection}",)
        )
        return [kind.FromString(message) for (message,) in rows]

    def remove(self, name: str) -> None:
        """Delete a resource, those below it, and the links of all of them."""
        below = (name, f"{name}/", f"{name}0")  # `0` follows `/`
        self.execute("DELETE FROM resources WHERE name = ? OR (name > ? AND name < ?)", below)
        self.execute("DELETE FROM links WHERE source = ? OR (source > ? AND source < ?)", below)
        self.execute("DELETE FROM links WHERE target = ? OR (target > ? AND target < ?)", below)

    def link(self, source: str, target: str, message: bytes = b"") -> None:
        self.execute("INSERT OR REPLACE INTO links VALUES (?, ?, ?)", (source, target, message))

    def links_of(self, source: str) -> dict[str, bytes]:
        """What is linked to a resource, by name."""
        return dict(
            self.rows("SELECT target, message FROM links WHERE source = ? ORDER BY target", (source,))
        )


def by_number(name: str) -> str:
    """A resource's name with the project's number, as the service writes it."""
    return re.sub(r"^projects/([^/]+)", lambda match: f"projects/{project_number(match[1])}", name)
