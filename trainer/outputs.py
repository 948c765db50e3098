"""Where a run leaves what it made: model, checkpoints, TensorBoard logs.

Vertex AI sets the three AIP variables when the job has a baseOutputDirectory
(https://cloud.google.com/vertex-ai/docs/training/code-requirements). All replicas get the same
values, so only the chief may write there under names that are not its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.storage import Location, located


@dataclass(frozen=True, kw_only=True)
class Outputs:
    model: Location
    checkpoints: Location
    logs: Location


def outputs_from(environment: Mapping[str, str], job_dir: str | None) -> Outputs:
    """The AIP directories; where one is not set, a folder of its name under `job_dir`, else under ./output.

    Raises:
        Unusable: a directory lies in a bucket that is not mounted here.
    """
    base = (job_dir or "output").rstrip("/")

    def place(variable: str, folder: str) -> Location:
        return located(environment.get(variable) or f"{base}/{folder}/", environment)

    return Outputs(
        model=place("AIP_MODEL_DIR", "model"),
        checkpoints=place("AIP_CHECKPOINT_DIR", "checkpoints"),
        logs=place("AIP_TENSORBOARD_LOG_DIR", "logs"),
    )
