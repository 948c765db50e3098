"""The log entry that a sink delivered, as a hint: which job it is about, and whether it reports an end.

A hint only says which job to check: every principal with permission to write logs can forge one.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from trainmaster.orchestrator.core.documents.codec import time_or
from trainmaster.orchestrator.core.documents.values import at, mapping_at
from trainmaster.orchestrator.core.events.envelope import PubsubMessage, message_document

# Source: service lines that training jobs logged in 2026; the line of a cancelled job is not known.
END_LINES = ("Job completed successfully.", "Job failed.")
TRIAL_LABEL = "ml.googleapis.com/trial_id"
"""With a value, it marks an entry about one trial of a tuning job; Google does not document these labels.

Other jobs' entries have it too, empty: https://github.com/kestra-io/kestra/issues/6849
"""
_JOB_ID = re.compile(r"[0-9]{1,32}")


@dataclass(frozen=True, kw_only=True)
class JobHint:
    """A job to check. `tells_end`: the entry reports that the job has ended, not only one of its trials."""

    job_id: str
    tells_end: bool
    insert_id: str
    entry_time: datetime


def parse_hint(message: PubsubMessage) -> JobHint | None:
    """The hint in the message; None when the entry is not about a training job.

    Source: https://cloud.google.com/logging/docs/export/pubsub

    Raises:
        EventMalformed: the message does not hold a log entry.
    """
    entry = message_document(message, "a log entry")
    labels = mapping_at(entry, "resource", "labels")
    job_id = labels.get("job_id")
    is_of_job = at(entry, "resource", "type") == "ml_job"
    if not is_of_job or not isinstance(job_id, str) or not _JOB_ID.fullmatch(job_id):
        return None
    # The line is plain text or part of a payload, depending on the writer.
    text = entry.get("textPayload") or at(entry, "jsonPayload", "message")
    tells_end = (
        labels.get("task_name") == "service"
        # A study continues after a trial: retrying until the study ends would mean hours of redelivery.
        and not mapping_at(entry, "labels").get(TRIAL_LABEL)
        and isinstance(text, str)
        and any(line in text for line in END_LINES)
    )
    return JobHint(
        job_id=job_id,
        tells_end=tells_end,
        insert_id=str(entry.get("insertId") or message.message_id),
        entry_time=time_or(entry.get("timestamp"), message.publish_time),
    )
