"""The state behind the API's methods, and access to objects whose files other processes may change."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from trainstack.iam.service import Grants
from trainstack.storage.drops.threads import BucketThreads
from trainstack.storage.objects.errors import UnsettledError
from trainstack.storage.sessions import UploadSessions
from trainstack.storage.store import ObjectStore

_ATTEMPTS = 3

_Result_co = TypeVar("_Result_co", covariant=True)


class StoreOperation(Protocol[_Result_co]):
    """An operation on an object; see `ObjectStore` for `strict`."""

    def __call__(self, *, strict: bool) -> _Result_co: ...


@dataclass(kw_only=True)
class StorageService:
    """The state that all methods use."""

    store: ObjectStore
    threads: BucketThreads
    uploads: UploadSessions
    grants: Grants | None = None

    async def settled(self, operation: StoreOperation[_Result_co]) -> _Result_co:
        """The operation's result, after recording other processes' changes to the files it uses."""
        for _ in range(_ATTEMPTS):
            try:
                return operation(strict=True)
            except UnsettledError as changed:
                if not await self.threads.wait_for_look(changed.bucket, changed.name):
                    break
        return operation(strict=False)
