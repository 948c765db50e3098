"""What is shown of a job beside the job itself: in audit entries, and in the operation that its deletion answers with."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime

from trainmaster.local.jobs.resource.job import Job


def brief(job: Job) -> Mapping[str, object]:
    """What an audit entry shows of a job."""
    return {"displayName": job.message.display_name, "labels": dict(job.message.labels)}


def delete_operation_of(job: Job) -> dict[str, object]:
    """The finished operation that the deletion of a job answers with."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "name": f"{job.parent}/operations/{10**18 + secrets.randbelow(8 * 10**18)}",
        "metadata": {
            "@type": "type.googleapis.com/google.cloud.aiplatform.v1.DeleteOperationMetadata",
            "genericMetadata": {"createTime": now, "updateTime": now},
        },
        "done": True,
        "response": {"@type": "type.googleapis.com/google.protobuf.Empty"},
    }
