"""The directories of a smoke run. Each replica sees a model directory of its own, so that it shows who wrote what."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trainmaster.inspect.smoke.environment import BUCKET, RUN, TRIAL


@dataclass(frozen=True, kw_only=True)
class Stage:
    """`base` holds a folder per replica. Checkpoints and logs are shared between them, as on Vertex AI."""

    base: Path
    run: str

    def of(self, role: str) -> Path:
        return self.base / role

    def output(self, role: str, stream: str) -> Path:
        return self.of(role) / stream

    def model_files(self, role: str) -> tuple[str, ...]:
        """What this replica left in AIP_MODEL_DIR, relative to it."""
        model = self.of(role) / "gcs" / self.run / "model"
        return tuple(sorted(str(path.relative_to(model)) for path in model.rglob("*") if path.is_file()))

    def reported(self, role: str) -> frozenset[str]:
        """The metrics in this replica's metric file, by the names they are reported under."""
        path = self.of(role) / "metrics" / "output.metrics"
        found: set[str] = set()
        for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
            try:
                report = json.loads(line)
            except ValueError:
                continue
            if isinstance(report, dict):
                found |= report.keys() - {"timestamp", "trial", "global_step", "checkpoint_path"}
        return frozenset(found)


@contextmanager
def staged(roles: Sequence[str], *, is_trial: bool) -> Iterator[Stage]:
    """Directories that are there from the start, as in a bucket every path is; removed at the end."""
    run = f"{BUCKET}/{RUN}/{TRIAL}" if is_trial else f"{BUCKET}/{RUN}"
    with tempfile.TemporaryDirectory(prefix="trainmaster-inspect-", ignore_cleanup_errors=True) as made:
        stage = Stage(base=Path(made), run=run)
        first = stage.of(roles[0]) / "gcs" / run
        for role in roles:
            for folder in ("tmp", "metrics", f"gcs/{run}/model"):
                (stage.of(role) / folder).mkdir(parents=True)
            for shared in ("checkpoints", "logs"):
                here = stage.of(role) / "gcs" / run / shared
                if role == roles[0]:
                    here.mkdir()
                else:
                    here.symlink_to(first / shared)
        yield stage
