"""Taking the machine of a replica away, in the stack that runs on a state folder."""

import re
import shlex
from pathlib import Path

from trainmaster.local.events.rest import CallRefusedError, call
from trainmaster.local.stack.errors import StackRefusedError, StateError

CHIEF = "workerpool0-0"
_JOB_NAME = re.compile(r"projects/[^/]+/locations/[^/]+/customJobs/[0-9]+")


def preempt(state: Path, job: str, replica: str = CHIEF) -> None:
    """Preempt one replica of a custom job that runs on the stack. Returns when its SIGTERM is sent.

    Args:
        state: the stack's state folder.
        job: the job's id, or its full name.
        replica: as logs and error messages name it, `workerpool1-0`.

    Raises:
        StateError: no stack is ready there.
        StackRefusedError: the JobService refuses: it says why.
    """
    variables = _variables(state)
    project, region = variables["GOOGLE_CLOUD_PROJECT"], variables["TRAINMASTER_REGION"]
    name = job if _JOB_NAME.fullmatch(job) else f"projects/{project}/locations/{region}/customJobs/{job}"
    try:
        call(
            "POST",
            variables["VERTEX_EMULATOR_HOST"],
            f"/emulator/v1/{name}:preempt",
            {"replica": replica},
        )
    except CallRefusedError as refused:
        raise StackRefusedError(refused.reason) from refused
    except OSError as error:
        raise StateError(f"The stack on {str(state)!r} does not answer: {error}.") from error


def _variables(state: Path) -> dict[str, str]:
    try:
        words = shlex.split((state / "stack.env").read_text(encoding="utf-8"))
    except OSError as error:
        raise StateError(f"No stack is ready on {str(state)!r}; choose another with --state DIR.") from error
    return dict(word.split("=", 1) for word in words if "=" in word)
