"""What the service's "not now" is about: room for the job, or how fast it is asked."""

import re
from enum import StrEnum

TOO_MANY_REQUESTS = 429
_RATE = re.compile(r"requests per minute|RATE_LIMIT|_requests\b", re.IGNORECASE)
"""Quotas of requests name themselves so; those of resources name machines, accelerators or jobs.

Source: https://cloud.google.com/vertex-ai/docs/quotas#request_quotas and
https://cloud.google.com/service-infrastructure/docs/service-control/reference/rest/v1/services/allocateQuota
"""


class Deferral(StrEnum):
    """NO_ROOM: another rung, or later. TOO_FAST: the same rung again, after a short pause of the whole region."""

    NO_ROOM = "no_room"
    TOO_FAST = "too_fast"


def deferral_of(code: int, reason: str) -> Deferral:
    """What a refusal of this HTTP status and text asks for."""
    if code == TOO_MANY_REQUESTS and _RATE.search(reason):
        return Deferral.TOO_FAST
    return Deferral.NO_ROOM
