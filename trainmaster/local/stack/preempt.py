"""Taking the machine of a replica away, in the stack that runs on a state folder."""

import json
import re
import shlex
import urllib.error
import urllib.request
from pathlib import Path

from trainmaster.local.stack.errors import JobError, StateError

CHIEF = "workerpool0-0"
_TIMEOUT_S = 30.0
_JOB_NAME = re.compile(r"projects/[^/]+/locations/[^/]+/customJobs/[0-9]+")


def preempt(state: Path, job: str, replica: str = CHIEF) -> None:
    """Preempt one replica of a custom job that runs on the stack. Returns when its SIGTERM is sent.

    Args:
        state: the stack's state folder.
        job: the job's id, or its full name.
        replica: as logs and error messages name it, `workerpool1-0`.

    Raises:
        StateError: no stack is ready there.
        JobError: the JobService refuses: it says why.
    """
    variables = _variables(state)
    project, region = variables["GOOGLE_CLOUD_PROJECT"], variables["TRAINMASTER_REGION"]
    name = job if _JOB_NAME.fullmatch(job) else f"projects/{project}/locations/{region}/customJobs/{job}"
    url = f"{variables['VERTEX_EMULATOR_HOST']}/emulator/v1/{name}:preempt"
    body = json.dumps({"replica": replica}).encode()
    request = urllib.request.Request(url, data=body, method="POST")  # noqa: S310  the stack's own URL
    try:
        urllib.request.urlopen(request, timeout=_TIMEOUT_S).close()  # noqa: S310
    except urllib.error.HTTPError as refusal:
        with refusal:
            raise JobError(_reason(refusal.read())) from refusal
    except OSError as fault:
        raise StateError(f"The stack on {str(state)!r} does not answer: {fault}.") from fault


def _variables(state: Path) -> dict[str, str]:
    try:
        words = shlex.split((state / "stack.env").read_text(encoding="utf-8"))
    except OSError as fault:
        raise StateError(f"No stack is ready on {str(state)!r}; choose another with --state DIR.") from fault
    return dict(word.split("=", 1) for word in words if "=" in word)


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace")
