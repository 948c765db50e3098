"""Bytes as they come from a pipe, cut into lines of bounded length."""

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class LineCutter:
    """Cuts a stream of bytes at newlines, and lines longer than `limit_bytes` into pieces."""

    limit_bytes: int
    _rest: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, in order, without their newlines."""
        self._rest += data
        if b"\n" not in data and len(self._rest) <= self.limit_bytes:
            return []
        *whole, rest = bytes(self._rest).split(b"\n")
        lines = [piece for line in whole for piece in self._pieces(line)]
        *over, last = self._pieces(rest)
        self._rest = bytearray(last)
        return lines + over

    def close(self) -> list[bytes]:
        """What the stream ended with, if it did not end with a newline."""
        rest, self._rest = bytes(self._rest), bytearray()
        return self._pieces(rest) if rest else []

    def _pieces(self, line: bytes) -> list[bytes]:
        """At least one piece; carriage returns before the newline are dropped."""
        line = line.removesuffix(b"\r")
        return [line[at : at + self.limit_bytes] for at in range(0, len(line), self.limit_bytes)] or [b""]
