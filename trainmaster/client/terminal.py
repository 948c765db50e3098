"""Untrusted text, made safe for a terminal, which would execute control characters."""


def one_line(text: str, most_chars: int | None = None) -> str:
    """`text` on one line: control and formatting characters become spaces, and an ellipsis marks a cut at the limit."""
    line = "".join(char if char.isprintable() else " " for char in text)
    return line if most_chars is None or len(line) <= most_chars else f"{line[: most_chars - 1]}…"
