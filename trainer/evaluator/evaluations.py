"""evaluations.jsonl: an evaluator's results, one JSON object per line; each result rewrites the file.

Mounted buckets can neither append nor lock; a reader always sees a complete file.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from trainer.storage import write_whole

FILE_NAME = "evaluations.jsonl"
CHIEF_WAITS_S = 60.0
POLL_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """`epoch` epochs were finished, and `step` steps of the next one; `iterations` counts all steps of the run."""

    epoch: int
    step: int
    iterations: int
    metrics: Mapping[str, float | None]


class Evaluations:
    """The evaluations of one evaluator in its directory, including those of an earlier attempt."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / FILE_NAME
        self._known = list(read_evaluations(self._path))
        self._write()  # from now on the chief sees that there is an evaluator

    def __contains__(self, place: tuple[int, int]) -> bool:
        """Whether the checkpoint of this epoch and step has been evaluated."""
        return any((known.epoch, known.step) == place for known in self._known)

    def add(self, evaluation: Evaluation) -> None:
        self._known.append(evaluation)
        self._write()

    def _write(self) -> None:
        lines = (json.dumps(asdict(known), allow_nan=False) + "\n" for known in self._known)
        write_whole(self._path, "".join(lines))


def read_evaluations(path: Path) -> Iterator[Evaluation]:
    """The evaluations in a file, if it exists; damaged lines are skipped."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield Evaluation(**json.loads(line))
        except (ValueError, TypeError):
            continue


def await_evaluators(logs: Path, *, epochs: int, within_s: float = CHIEF_WAITS_S) -> None:
    """After the export, wait until the evaluators have evaluated the last epoch's checkpoint.

    Vertex AI stops every other replica when the chief exits, and the chief removes its checkpoints.
    All replicas that train together must call this: TensorFlow counts one that exits earlier as lost.
    It waits at most `within_s` seconds.
    """
    deadline = time.monotonic() + within_s
    files = list(logs.glob(f"evaluator-*/{FILE_NAME}"))
    while time.monotonic() < deadline and not all(
        any(found.epoch >= epochs for found in read_evaluations(path)) for path in files
    ):
        time.sleep(POLL_S)
