"""The state behind the API's methods: objects whose files other processes may change, and uploads in progress."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainstack.iam.service import BUCKETS, Grants
from trainstack.storage.acl import hidden_members
from trainstack.storage.buckets.resource import ROLES, Bindings
from trainstack.storage.drops.threads import BucketThreads
from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.objects.preconditions import Insertion, ObjectTarget
from trainstack.storage.objects.records import BucketRecord, ObjectRecord
from trainstack.storage.objects.staging import Staged
from trainstack.storage.store import ObjectStore

_ATTEMPTS = 3
_MAX_KEPT = 500  # each has an open file


@dataclass(kw_only=True)
class Upload:
    """One session: its insertion, the bytes so far, and the resulting object; the parts of a multipart upload by number.

    The lock serializes its chunks: after a timeout, a client may resend a chunk while the first is still
    being read.
    """

    insertion: Insertion
    staged: Staged
    result: ObjectRecord | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    parts: dict[int, Staged] = field(default_factory=dict)

    def discard(self) -> None:
        self.staged.discard()
        self.discard_parts()

    def discard_parts(self) -> None:
        while self.parts:
            self.parts.popitem()[1].discard()


class UploadSessions:
    """The resumable and multipart uploads of one store, by the token of their staged file; the 501st replaces the oldest.

    They end with the emulator: a returning client must start over.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._uploads: OrderedDict[str, Upload] = OrderedDict()

    def begin(self, insertion: Insertion) -> str:
        """Create a session and return its id."""
        staged = Staged(self._folder)
        self._uploads[staged.token] = Upload(insertion=insertion, staged=staged)
        if len(self._uploads) > _MAX_KEPT:
            self._uploads.popitem(last=False)[1].discard()
        return staged.token

    def find(self, upload_id: str, *, bucket: str) -> Upload:
        """Raises `RefusedError` (404) if there is no such session in this bucket."""
        upload = self._uploads.get(upload_id)
        if upload is None or upload.insertion.bucket != bucket:
            raise RefusedError(404, "notFound", f"No such upload session: {upload_id!r}; start a new one.")
        return upload

    def cancel(self, upload_id: str) -> None:
        """End the session and delete its bytes."""
        self._uploads.pop(upload_id).discard()

    def close(self) -> None:
        """End every session."""
        while self._uploads:
            self._uploads.popitem()[1].discard()


@dataclass(kw_only=True)
class StorageService:
    """The state that all methods use."""

    store: ObjectStore
    threads: BucketThreads
    uploads: UploadSessions
    grants: Grants | None = None

    def apply_policy(self, bucket: BucketRecord, *, removed: bool = False) -> None:
        """Let the bucket's IAM policy decide permissions, if a stack has grants."""
        if self.grants and bucket.bindings is not None:
            hidden = hidden_members(bucket)
            granted = [(binding["role"], set(binding["members"]) - hidden) for binding in bucket.bindings]
            self.grants.set_policy(BUCKETS + bucket.name, None if removed else granted, ROLES)

    def bindings(self, bucket: BucketRecord) -> Bindings:
        """The bucket's policy, also if it was never set."""
        if bucket.bindings is None and self.grants:
            granted: Any = self.grants.policy(BUCKETS + bucket.name)
            return granted.get("bindings") or ()
        return bucket.bindings or ()

    async def settle(self, *objects: ObjectTarget | Insertion) -> None:
        """Record other processes' changes to the objects' files. A file that is still being written keeps its record.

        Raises:
            RefusedError: 404, the bucket of one does not exist.
        """
        for _ in range(_ATTEMPTS):
            changed = [one for one in objects if not self.store.is_settled(one.bucket, one.name)]
            looks = [await self.threads.wait_for_look(one.bucket, one.name) for one in changed]
            if not all(looks) or not changed:
                return
