"""evaluations.jsonl: an evaluator's results, one JSON object per line; each result rewrites the file.

Mounted buckets can neither append nor lock; a reader always sees a complete file.
"""

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
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


def read_evaluations(directory: Path) -> list[Evaluation]:
    """The results of the evaluator of this directory, those of an earlier attempt included; damaged lines are skipped."""
    path, evaluations = directory / FILE_NAME, list[Evaluation]()
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError):
            evaluations.append(Evaluation(**json.loads(line)))
    return evaluations


def write_evaluations(directory: Path, evaluations: Iterable[Evaluation]) -> None:
    """Even none: from then on the chief sees that there is an evaluator."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(asdict(evaluation), allow_nan=False) + "\n" for evaluation in evaluations)
    write_whole(directory / FILE_NAME, "".join(lines))


def await_evaluators(logs: Path, *, epochs: int, within_s: float = CHIEF_WAITS_S) -> None:
    """After the export, wait until the evaluators have evaluated the last epoch's checkpoint.

    Vertex AI stops every other replica when the chief exits, and the chief removes its checkpoints.
    All replicas that train together must call this: TensorFlow counts one that exits earlier as lost.
    It waits at most `within_s` seconds.
    """
    deadline = time.monotonic() + within_s
    files = list(logs.glob(f"evaluator-*/{FILE_NAME}"))
    while time.monotonic() < deadline and not all(
        any(evaluation.epoch >= epochs for evaluation in read_evaluations(path.parent)) for path in files
    ):
        time.sleep(POLL_S)
