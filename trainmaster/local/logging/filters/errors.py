"""What is wrong with a filter."""


class FilterError(ValueError):
    """Not a filter of this language, or one that asks of a field what it cannot answer."""

    def __init__(self, reason: str, *, line: int = 0, column: int = 0) -> None:
        """`line` and `column` count from 1; 0 when the fault has no single place."""
        where = f" at line {line}, column {column}" if line else ""
        super().__init__(f"Unparseable filter: {reason}{where}")
        self.line = line
        self.column = column
