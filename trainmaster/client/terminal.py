"""Text for a terminal: untrusted text without control characters, which it would execute, and sizes."""

_KIBI = 1024


def one_line(text: str, most_chars: int | None = None) -> str:
    """`text` on one line: control and formatting characters become spaces, and an ellipsis marks a cut at the limit."""
    line = "".join(char if char.isprintable() else " " for char in text)
    return line if most_chars is None or len(line) <= most_chars else f"{line[: most_chars - 1]}…"


def size_text(size_bytes: int) -> str:
    """A size for people: `12.5 MiB`."""
    size, units = float(size_bytes), ["bytes", "KiB", "MiB", "GiB"]
    while size >= _KIBI and len(units) > 1:
        size, units = size / _KIBI, units[1:]
    return f"{size:,.1f}".removesuffix(".0") + f" {units[0]}"
