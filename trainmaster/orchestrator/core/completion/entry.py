"""The log entry that a sink delivered, as a hint: which job it is about, and whether it tells of an end.

A hint only says where to look. Whoever may write logs can write any of this.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trainmaster.orchestrator.core.documents.codec import time_or
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import PubsubMessage

# Source: service lines as training jobs of 2026 logged them; the wording of a cancelled job's is not known.
END_LINES = ("Job completed successfully.", "Job failed.")
TRIAL_LABEL = "ml.googleapis.com/trial_id"
"""On entries about one trial of a tuning. Seen in published logs; Google documents no labels of these entries."""
_JOB_ID = re.compile(r"[0-9]{1,32}")


@dataclass(frozen=True, kw_only=True)
class JobHint:
    """Look at this job. `tells_end`: the entry says that it has ended, and not just one of its trials."""

    job_id: str
    tells_end: bool
    insert_id: str
    entry_time: datetime


def parse_hint(message: PubsubMessage) -> JobHint | None:
    """The hint in the message; None when the entry is about no training job.

    Source: https://cloud.google.com/logging/docs/export/pubsub

    Raises:
        EventMalformed: the message holds no log entry.
    """
    try:
        entry = json.loads(message.data)
    except (ValueError, RecursionError) as error:
        raise EventMalformed(
            f"message {message.message_id!r} does not contain a JSON log entry: {error}"
        ) from error
    if not isinstance(entry, Mapping):
        raise EventMalformed(f"message {message.message_id!r} contains a {type(entry).__name__}")
    resource = _mapping(entry.get("resource"))
    labels = _mapping(resource.get("labels"))
    job_id = labels.get("job_id")
    if resource.get("type") != "ml_job" or not isinstance(job_id, str) or not _JOB_ID.fullmatch(job_id):
        return None
    # The line comes as text or inside a payload, depending on who wrote it.
    text = entry.get("textPayload") or _mapping(entry.get("jsonPayload")).get("message")
    tells_end = (
        labels.get("task_name") == "service"
        # A study goes on after a trial: asking again until it ends would be redelivery for hours.
        and TRIAL_LABEL not in _mapping(entry.get("labels"))
        and isinstance(text, str)
        and any(line in text for line in END_LINES)
    )
    return JobHint(
        job_id=job_id,
        tells_end=tells_end,
        insert_id=str(entry.get("insertId") or message.message_id),
        entry_time=time_or(entry.get("timestamp"), message.publish_time),
    )


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
