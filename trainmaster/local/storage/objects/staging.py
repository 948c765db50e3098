"""Uploads in progress: a file outside of every bucket, hashed as it is written, moved into place atomically."""

import base64
import contextlib
import hashlib
import os
import secrets
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import google_crc32c

from trainmaster.local.storage.objects.folder import fingerprint_of
from trainmaster.local.storage.objects.records import Fingerprint

_CHUNK_BYTES = 1 << 20


class Digest:
    """MD5 and CRC32C of the bytes so far, in base64 as in the API (CRC32C big-endian).

    Source: https://cloud.google.com/storage/docs/hashes-etags
    """

    def __init__(self) -> None:
        self.size = 0
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._crc32c = 0

    def update(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._md5.update(chunk)
        self._crc32c = google_crc32c.extend(self._crc32c, chunk)

    @property
    def md5(self) -> str:
        return base64.b64encode(self._md5.digest()).decode()

    @property
    def crc32c(self) -> str:
        return base64.b64encode(self._crc32c.to_bytes(4, "big")).decode()


def digest_of(descriptor: int) -> Digest:
    """The digest of a whole open file, read a megabyte at a time."""
    digest = Digest()
    os.lseek(descriptor, 0, os.SEEK_SET)
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        digest.update(chunk)
    return digest


class Staged:
    """One staged file. As a context manager, it removes the file unless it was moved into place."""

    def __init__(self, directory: Path) -> None:
        """Create a file. Raises `OSError` if the disk is full."""
        self.token = secrets.token_hex(16)
        self.path = directory / self.token
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
        self.digest = Digest()

    @property
    def size(self) -> int:
        return self.digest.size

    def write(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self.digest.update(chunk)

    def fingerprint(self) -> Fingerprint:
        """The fingerprint that the file keeps when it is moved into place.

        Its modification time is set to the nanosecond. The kernel's times advance only every 10 ms or so, so
        a file rewritten in place soon after could look the same.
        """
        now_ns = time.time_ns()
        os.utime(self._descriptor, ns=(now_ns, now_ns))
        return fingerprint_of(os.fstat(self._descriptor))

    def close(self) -> None:
        """Close the file and keep it. Safe to call twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def discard(self) -> None:
        self.close()
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.discard()
