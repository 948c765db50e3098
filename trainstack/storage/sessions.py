"""Resumable uploads in progress. They end with the emulator: a returning client must start over."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.objects.preconditions import Insertion
from trainstack.storage.objects.records import ObjectRecord
from trainstack.storage.objects.staging import Staged

_MAX_KEPT = 500  # each has an open file


@dataclass(kw_only=True)
class Upload:
    """One session: its insertion, the bytes so far, and the resulting object.

    The lock serializes its chunks: after a timeout, a client may resend a chunk while the first is still
    being read.
    """

    insertion: Insertion
    staged: Staged
    result: ObjectRecord | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class UploadSessions:
    """The sessions of one store, by the token of their staged file; the 501st replaces the oldest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._uploads: OrderedDict[str, Upload] = OrderedDict()

    def begin(self, insertion: Insertion) -> str:
        """Create a session and return its id."""
        staged = Staged(self._folder)
        self._uploads[staged.token] = Upload(insertion=insertion, staged=staged)
        if len(self._uploads) > _MAX_KEPT:
            self._uploads.popitem(last=False)[1].staged.discard()
        return staged.token

    def find(self, upload_id: str, *, bucket: str) -> Upload:
        """Raises `RefusedError` (404) if there is no such session in this bucket."""
        upload = self._uploads.get(upload_id)
        if upload is None or upload.insertion.bucket != bucket:
            raise RefusedError(404, "notFound", f"No such upload session: {upload_id!r}; start a new one.")
        return upload

    def cancel(self, upload_id: str) -> None:
        """End the session and delete its bytes."""
        self._uploads.pop(upload_id).staged.discard()

    def close(self) -> None:
        """End every session."""
        while self._uploads:
            self._uploads.popitem()[1].staged.discard()
