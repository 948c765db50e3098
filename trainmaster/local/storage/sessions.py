"""Resumable uploads under way. Their state survives a restart: the bytes in a staged file, the request in the catalog."""

import json
from collections import OrderedDict
from dataclasses import asdict

from trainmaster.local.storage.objects.errors import RefusedError
from trainmaster.local.storage.objects.preconditions import Preconditions
from trainmaster.local.storage.objects.records import StoredObject
from trainmaster.local.storage.objects.requests import Insertion
from trainmaster.local.storage.objects.staging import Staged
from trainmaster.local.storage.store import Store

_KEPT_US = 7 * 24 * 3600 * 1_000_000  # a session ends after a week, as the service's do
_MAX_OPEN = 256


class Uploads:
    """The sessions of one store. A session's id is the token of its staged file. Used from one thread alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: OrderedDict[str, Staged] = OrderedDict()
        store.catalog.execute("DELETE FROM uploads WHERE created_us < ?", (store.now_us() - _KEPT_US,))

    def begin(self, insertion: Insertion) -> str:
        """The id of a new session."""
        staged = Staged(self._store.uploads_path)
        self._store.catalog.execute(
            "INSERT INTO uploads VALUES (?, ?, ?, ?, '')",
            (staged.token, insertion.bucket, json.dumps(asdict(insertion)), self._store.now_us()),
        )
        self._keep(staged)
        return staged.token

    def insertion(self, upload_id: str) -> Insertion:
        """What the session was begun for. Raises `RefusedError` (404) when there is no such session."""
        request, _ = self._row(upload_id)
        fields = json.loads(request)
        return Insertion(**{**fields, "conditions": Preconditions(**fields["conditions"])})

    def result(self, upload_id: str) -> StoredObject | None:
        """The object that the session ended in; None while it is under way.

        Also finds an object that was put on record just before a kill, without its session knowing.
        Raises `RefusedError` (404) when there is no such session, or its object was replaced since.
        """
        _, result = self._row(upload_id)
        if not result and (upload_id in self._open or (self._store.uploads_path / upload_id).exists()):
            return None
        stored = self._store.catalog.with_token(upload_id)
        if stored is None:
            raise _no_such_upload(upload_id)
        return stored

    def staged(self, upload_id: str) -> Staged:
        """The bytes so far, to append to. After a restart this reads them all once, to hash them."""
        staged = self._open.pop(upload_id, None) or Staged(self._store.uploads_path, token=upload_id)
        self._keep(staged)
        return staged

    def finish(self, upload_id: str) -> None:
        """Note that the staged file has become an object."""
        self._open.pop(upload_id, None)
        self._store.catalog.execute("UPDATE uploads SET result = 'done' WHERE id = ?", (upload_id,))

    def cancel(self, upload_id: str) -> None:
        """End the session and forget its bytes. Raises `RefusedError` (404) when there is no such session."""
        self._row(upload_id)
        staged = self._open.pop(upload_id, None)
        if staged:
            staged.discard()
        (self._store.uploads_path / upload_id).unlink(missing_ok=True)
        self._store.catalog.execute("DELETE FROM uploads WHERE id = ?", (upload_id,))

    def close(self) -> None:
        """Let go of the open files; the sessions stay."""
        while self._open:
            self._open.popitem()[1].close()

    def _keep(self, staged: Staged) -> None:
        self._open[staged.token] = staged
        if len(self._open) > _MAX_OPEN:
            self._open.popitem(last=False)[1].close()

    def _row(self, upload_id: str) -> tuple[str, str]:
        row = self._store.catalog.row("SELECT request, result FROM uploads WHERE id = ?", (upload_id,))
        if row is None:
            raise _no_such_upload(upload_id)
        return row[0], row[1]


def _no_such_upload(upload_id: str) -> RefusedError:
    return RefusedError(404, "notFound", f"No such upload session: {upload_id!r}; begin a new one.")
