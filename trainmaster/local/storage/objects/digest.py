"""The two hashes that Cloud Storage keeps of an object, made while its bytes pass by."""

import base64
import hashlib
import os

import google_crc32c

_CHUNK_BYTES = 1 << 20


class Digest:
    """MD5 and CRC32C of the bytes so far, in base64 as the API spells them (CRC32C big-endian).

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
    """The digest of a whole open file, a megabyte in memory at a time."""
    digest = Digest()
    os.lseek(descriptor, 0, os.SEEK_SET)
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        digest.update(chunk)
    return digest
