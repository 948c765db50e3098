"""Which module a command line starts."""

from collections.abc import Sequence
from pathlib import PurePosixPath


def modules_in(words: Sequence[str]) -> list[str]:
    """What `python -m trainer.task` or `python /app/trainer/task.py` may be called in a tree, the longest first.

    Empty where no Python program is seen. Of a launcher, `python -m trainer.launch … -- python train.py`, it is
    the program behind the dashes.
    """
    if "--" in words and (launched := modules_in(words[list(words).index("--") + 1 :])):
        return launched
    if "-m" in words[:-1]:
        return [words[list(words).index("-m") + 1]]
    script = next((word for word in words if word.endswith(".py") and not word.startswith("-")), None)
    if script is None:
        return []
    parts = [part for part in PurePosixPath(script).with_suffix("").parts if part not in {"/", "."}]
    return [".".join(parts[start:]) for start in range(len(parts))]


def is_program(words: Sequence[str]) -> bool:
    """Whether these words begin with a program, rather than with a flag for one."""
    return bool(words) and not words[0].startswith("-")
