"""Foreign text on a terminal, which obeys what it is shown."""


def one_line(text: str, most_chars: int) -> str:
    """`text` on one line, cut after `most_chars`, with a space for whatever moves, colours or reorders a line."""
    line = "".join(char if char.isprintable() else " " for char in text)
    return line if len(line) <= most_chars else f"{line[:most_chars]}…"
