"""The most bytes of each kind of object that are read: a function has 512 MiB, and others may write any size.

What the service writes itself stays below the limit of its kind, so a larger object is foreign or damaged.
"""

KIB, MIB = 1024, 1024 * 1024

MAX_REQUEST_BYTES = 256 * KIB
"""Also of a request that a rule names with request_uri."""
MAX_RULE_BYTES = 64 * KIB
MAX_MANIFEST_BYTES = 4 * MIB
MAX_METRICS_BYTES = 64 * KIB

MAX_CANONICAL_BYTES = MIB
"""What an accepted request takes in the form of its record: 256 KiB of text, and 10,000 values on a line each."""
MAX_RECORD_BYTES = 2 * MIB
MAX_STATUS_BYTES = MIB
MAX_CHAMPION_BYTES = 4 * MIB
MAX_MODEL_FILES_BYTES = 32 * MIB
MAX_BOOK_BYTES = 8 * MIB
MAX_STATE_BYTES = 640 * KIB
"""Of a rule; a test checks the worst case."""
MAX_BATCH_BYTES = 8 * MIB
MAX_CHUNK_BYTES = 36 * MIB
"""Of 10,000 objects that wait, should their names be as long as names may be; usually, it takes 2 MiB."""
MAX_ROUND_BYTES = 32 * MIB
"""Of a retention's round: about 100 bytes for each run that others started from."""
MAX_MARK_BYTES = 64 * KIB
"""Of a small object whose name says most: an index row, a position, the mark of a reported cap."""


def in_bytes(size_bytes: int) -> str:
    """`1 byte`, `2 bytes`."""
    return f"{size_bytes} {'byte' if size_bytes == 1 else 'bytes'}"
