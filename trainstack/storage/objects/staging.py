"""Uploads in progress: a file outside of every bucket, hashed as it is written, moved into place atomically."""

import base64
import contextlib
import errno
import functools
import hashlib
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import google_crc32c

from trainstack.storage.objects.folder import fingerprint_of
from trainstack.storage.objects.records import Fingerprint

_CHUNK_BYTES = 1 << 20
HOLES_HASHED_MAX_BYTES = 1 << 27
"""An MD5 needs every byte of a sparse file's holes, which may be terabytes that no program wrote; a CRC32C does not.

This number of them takes a quarter of a second.
"""
_POLYNOMIAL = 0x82F63B78
"""Castagnoli's, reflected: https://www.rfc-editor.org/rfc/rfc3720#section-12.1"""


class Digest:
    """MD5 and CRC32C of the bytes so far, in base64 as in the API (CRC32C big-endian).

    Source: https://cloud.google.com/storage/docs/hashes-etags
    """

    def __init__(self) -> None:
        self.size = 0
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._crc32c = 0
        self._zeros = 0

    def update(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._md5.update(chunk)
        self._crc32c = google_crc32c.extend(self._crc32c, chunk)

    def add_zeros(self, count: int) -> None:
        """Hash this many zero bytes. The MD5 is lost if all of them together are more than HOLES_HASHED_MAX_BYTES."""
        self._zeros += count
        self.size += count
        self._crc32c = _crc32c_with_zeros(self._crc32c, count)
        if self._zeros <= HOLES_HASHED_MAX_BYTES:
            for done in range(0, count, _CHUNK_BYTES):
                self._md5.update(bytes(min(_CHUNK_BYTES, count - done)))

    @property
    def md5(self) -> str:
        """Empty if it is not known, as for composite objects."""
        if self._zeros > HOLES_HASHED_MAX_BYTES:
            return ""
        return base64.b64encode(self._md5.digest()).decode()

    @property
    def crc32c(self) -> str:
        return base64.b64encode(self._crc32c.to_bytes(4, "big")).decode()


def digest_of(descriptor: int, is_wanted: Callable[[], bool]) -> Digest | None:
    """The digest of a whole open file, read a megabyte at a time; its holes are not read.

    None as soon as it is no longer wanted.
    """
    digest, size = Digest(), os.fstat(descriptor).st_size
    while digest.size < size:
        begin = _seek(descriptor, digest.size, os.SEEK_DATA, size)
        digest.add_zeros(begin - digest.size)
        end = _seek(descriptor, begin, os.SEEK_HOLE, size)
        os.lseek(descriptor, begin, os.SEEK_SET)
        while digest.size < end:
            if not is_wanted():
                return None
            chunk = os.read(descriptor, min(_CHUNK_BYTES, end - digest.size))
            if not chunk:  # cut meanwhile
                return digest
            digest.update(chunk)
    return digest


def _seek(descriptor: int, start: int, what: int, size: int) -> int:
    """Where the next data or hole begins, at most at `size`."""
    try:
        return min(os.lseek(descriptor, start, what), size)
    except OSError as fault:
        if fault.errno != errno.ENXIO:  # `start` is at the file's end, or no data follows it
            raise
        return size


def _crc32c_with_zeros(crc32c: int, count: int) -> int:
    """The CRC32C after `count` more zero bytes, in a step for each bit of the count: a product of polynomials.

    Source: crc32_combine of zlib, https://github.com/madler/zlib/blob/v1.3.1/crc32.c
    """
    factor = 1 << 31  # 1, reflected
    for bit in range(count.bit_length()):
        if count >> bit & 1:
            factor = _product(_zeros_factor(bit), factor)
    return _product(factor, crc32c ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


@functools.cache  # a file may have as many holes as blocks
def _zeros_factor(bit: int) -> int:
    """That of 2 ** bit zero bytes."""
    if bit == 0:
        return 1 << 23  # x to the eighth, reflected
    half = _zeros_factor(bit - 1)
    return _product(half, half)


def _product(one: int, other: int) -> int:
    """The product of two reflected polynomials, modulo the CRC's."""
    product = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product


class Staged:
    """One staged file. As a context manager, it removes the file unless it was closed, as one is that was moved into place."""

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

    def append(self, descriptor: int) -> None:
        """Write the rest of an open file, and close that."""
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            while chunk := file.read(_CHUNK_BYTES):
                self.write(chunk)

    def clear(self) -> None:
        os.ftruncate(self._descriptor, 0)
        self.digest = Digest()

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

    def __exit__(self, *_fault: object) -> None:
        if self._descriptor >= 0:
            self.discard()
