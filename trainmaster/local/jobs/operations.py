"""The operations that deletions answer with, all of them done. They are forgotten when the stack ends."""

import secrets
from datetime import UTC, datetime

from trainmaster.local.jobs.resource.errors import ApiError, Status
from trainmaster.local.jobs.resource.job import Job

Operation = dict[str, object]


class Operations:
    """Operations by full name, with the project's number."""

    def __init__(self) -> None:
        self._kept: dict[str, Operation] = {}

    def deletion_of(self, job: Job) -> Operation:
        """The operation of a job that was just deleted, kept."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        name = f"{job.parent}/operations/{10**18 + secrets.randbelow(8 * 10**18)}"
        operation: Operation = {
            "name": name,
            "metadata": {
                "@type": "type.googleapis.com/google.cloud.aiplatform.v1.DeleteOperationMetadata",
                "genericMetadata": {"createTime": now, "updateTime": now},
            },
            "done": True,
            "response": {"@type": "type.googleapis.com/google.protobuf.Empty"},
        }
        self._kept[name] = operation
        return operation

    def get(self, name: str) -> Operation:
        """Raises `ApiError`: NOT_FOUND."""
        if name not in self._kept:
            raise ApiError(Status.NOT_FOUND, f"The operation {name} does not exist.")
        return self._kept[name]
