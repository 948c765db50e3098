"""What the entry point shares with notebooks."""


def fit(epochs: int) -> float:
    """A loss that falls."""
    return 1.0 / epochs
