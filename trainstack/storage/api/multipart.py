"""`multipart/related` uploads, parsed as they arrive: first the metadata, then the media, which is never in memory as a whole.

Python's client separates lines with CRLF; gcloud uses only LF and puts the boundary in single quotes. Source:
https://cloud.google.com/storage/docs/uploading-objects#rest-upload-objects (multipart) and RFC 2387
"""

import re
from collections.abc import Iterator, Mapping

from trainstack.storage.objects.errors import invalid

_MAX_METADATA_BYTES = 1 << 20
_BOUNDARY = re.compile(r"""boundary=(?:"([^"]+)"|'([^']+)'|([^;\s]+))""", re.IGNORECASE)


def boundary_of(content_type: str) -> bytes:
    """The boundary named in a Content-Type. Raises `RefusedError` (400) if it names none."""
    match = _BOUNDARY.search(content_type)
    if not content_type.lower().startswith("multipart/") or not match:
        raise invalid(f"Invalid Content-Type: {content_type!r}; expected multipart/related with a boundary.")
    return next(part for part in match.groups() if part).encode()


class RelatedParser:
    """Parses the body incrementally and yields the media's bytes.

    `metadata` and `media_type` are set when the first media byte is yielded, at the latest when `done`.
    """

    def __init__(self, boundary: bytes) -> None:
        self.metadata = b""
        self.media_type = ""
        self.done = False
        self._opening = b"--" + boundary
        self._closing = b""
        self._waiting = b""
        self._in_media = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The media bytes known so far. Raises `RefusedError` (400) for a malformed body."""
        self._waiting += chunk
        if not self._in_media and not self._read_head():
            if len(self._waiting) > _MAX_METADATA_BYTES:
                raise invalid(f"Invalid multipart body: no metadata part within {_MAX_METADATA_BYTES} bytes.")
            return
        if self.done:
            return
        position = self._waiting.find(self._closing)
        if position >= 0:
            self.done = True
        else:
            position = max(0, len(self._waiting) - len(self._closing) + 1)
        media, self._waiting = self._waiting[:position], self._waiting[position:]
        if media:
            yield media

    def finish(self) -> None:
        """Raises `RefusedError` (400) if the body ended before its closing boundary."""
        if not self.done:
            raise invalid("Invalid multipart body: it ends before the closing boundary.")

    def _read_head(self) -> bool:
        """Parse both parts' headers and the metadata, once they have arrived."""
        text = self._waiting
        if len(text) > len(self._opening) and not text.startswith(self._opening):
            raise invalid(
                "Invalid multipart body: it does not begin with the boundary that Content-Type names."
            )
        first_line = text.find(b"\n")
        if first_line < 0:
            return False
        newline = b"\r\n" if text[first_line - 1 : first_line] == b"\r" else b"\n"
        separator = newline + self._opening
        metadata_at = text.find(newline * 2, first_line + 1 - len(newline))
        metadata_end = text.find(separator + newline, metadata_at)
        media_at = text.find(newline * 2, metadata_end + len(separator))
        if metadata_at < 0 or metadata_end < 0 or media_at < 0:
            return False
        self.metadata = text[metadata_at + 2 * len(newline) : metadata_end]
        fields = fields_of(text[metadata_end + len(separator) : media_at])
        self.media_type = fields.get(b"content-type", b"").decode("latin-1")
        self._closing = separator
        self._waiting = text[media_at + 2 * len(newline) :]
        self._in_media = True
        return True


def fields_of(head: bytes) -> Mapping[bytes, bytes]:
    """The header fields of a part, by their names in lower case."""
    fields = (line.partition(b":") for line in head.splitlines())
    return {name.strip().lower(): value.strip() for name, colon, value in fields if colon}
