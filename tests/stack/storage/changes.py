"""Changes of an object without a server, in a process that ends just before or after a change's commit."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from trainstack.storage.drops.scanner import DropScanner
from trainstack.storage.objects.preconditions import Insertion, ObjectTarget, Preconditions
from trainstack.storage.objects.staging import Staged
from trainstack.storage.store import ObjectStore


@contextmanager
def opened(folder: Path) -> Iterator[ObjectStore]:
    """As a start does: after a kill, changes are finished or taken back, and the folder's files compared."""
    with closing(ObjectStore(folder)) as store:
        for bucket in store.catalog.buckets():
            DropScanner(store).refresh(bucket.name)
        yield store


def changes_of(store: ObjectStore, name: str) -> dict[str, Callable[[], object]]:
    target = ObjectTarget(bucket="bucket", name=name, generation=None, conditions=Preconditions())

    def insertion(to: str) -> Insertion:
        fields = {"metadata": {"k": "v"}}
        return Insertion(bucket="bucket", name=to, content_type="", fields=fields, conditions=Preconditions())

    def put(content: bytes = b"new") -> None:
        with Staged(store.uploads_path) as staged:
            staged.write(content)
            store.put(staged, insertion(name))

    return {
        "first": lambda: put(b"old"),
        "put": put,
        "delete": lambda: store.delete(target),
        "move": lambda: store.move(target, insertion("to")),
    }


def die_in(store: ObjectStore, change: Callable[[], object], moment: str) -> None:
    whole = store.catalog.transaction

    @contextmanager
    def cut() -> Iterator[None]:
        with whole():
            yield
            if moment == "before":
                os._exit(9)
        os._exit(9)

    store.catalog.transaction = cut  # type: ignore[method-assign]
    change()


if __name__ == "__main__":
    folder, name, change, moment = sys.argv[1:]
    with opened(Path(folder)) as store:
        die_in(store, changes_of(store, name)[change], moment)
