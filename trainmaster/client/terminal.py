"""Foreign text on a terminal, which obeys what it is shown."""


def one_line(text: str, most_chars: int | None = None) -> str:
    """`text` on one line: a space for whatever moves, colours or reorders it, an ellipsis for what is beyond the limit."""
    line = "".join(char if char.isprintable() else " " for char in text)
    return line if most_chars is None or len(line) <= most_chars else f"{line[: most_chars - 1]}…"
