"""A watch on the buckets' folders: hints, from the kernel, where to look."""

from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

# Not the modifications: a training job that writes its logs makes thousands of them, and none counts before the close.
_EVENTS: list[type[FileSystemEvent]] = [
    *(DirCreatedEvent, DirDeletedEvent, DirMovedEvent),
    *(FileClosedEvent, FileCreatedEvent, FileDeletedEvent, FileMovedEvent),
]


class Watch(FileSystemEventHandler):
    """Calls `look(bucket, name)` for files and `refresh(bucket, folder)` for folders, in a thread of its own.

    Only hints: events may be late, doubled, or lost (when the kernel's queue overflows, or a machine runs out of watches).
    """

    def __init__(
        self, buckets: Path, *, look: Callable[[str, str], object], refresh: Callable[[str, str], object]
    ) -> None:
        super().__init__()
        self._root = f"{buckets}/"
        self._look = look
        self._refresh = refresh
        self._observer = Observer()
        self._observer.schedule(self, str(buckets), recursive=True, event_filter=_EVENTS)

    def start(self) -> None:
        """Raises `OSError` when the machine allows no more watches."""
        self._observer.start()

    def stop(self) -> None:
        self._observer.stop()
        self._observer.join()

    def on_any_event(self, event: FileSystemEvent) -> None:
        for path in (event.src_path, event.dest_path):
            text = path if isinstance(path, str) else bytes(path).decode(errors="surrogateescape")
            bucket, slash, name = text.removeprefix(self._root).partition("/")
            if not slash or not text.startswith(self._root):
                continue
            if event.is_directory:
                self._refresh(bucket, f"{name}/")
            else:
                self._look(bucket, name)
