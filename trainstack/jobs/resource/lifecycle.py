"""The states of a job, and which may follow which.

    QUEUED ──► PENDING ──► RUNNING ──► SUCCEEDED | FAILED
      │           │           │
      └───────────┴───────────┴──► CANCELLING ──► CANCELLED | SUCCEEDED | FAILED

A QUEUED job waits for capacity, a PENDING one has it, a RUNNING one has all replicas up. QUEUED and PENDING
may also move straight to FAILED. Cancelling is best effort: a job may end by itself while it is being
cancelled.

Source: https://cloud.google.com/vertex-ai/docs/training/understanding-training-service, read 2026-11.
"""

from enum import Enum


class ResourceState(Enum):
    """The states of a custom job, with the API's numbers."""

    QUEUED = 1
    PENDING = 2
    RUNNING = 3
    SUCCEEDED = 4
    FAILED = 5
    CANCELLING = 6
    CANCELLED = 7

    @property
    def api_name(self) -> str:
        return f"JOB_STATE_{self.name}"

    @property
    def is_terminal(self) -> bool:
        return self in _TERMINAL


_TERMINAL = frozenset({ResourceState.SUCCEEDED, ResourceState.FAILED, ResourceState.CANCELLED})

_NEXT = {
    ResourceState.QUEUED: {ResourceState.PENDING, ResourceState.FAILED, ResourceState.CANCELLING},
    ResourceState.PENDING: {ResourceState.RUNNING, ResourceState.FAILED, ResourceState.CANCELLING},
    ResourceState.RUNNING: {ResourceState.SUCCEEDED, ResourceState.FAILED, ResourceState.CANCELLING},
    ResourceState.CANCELLING: _TERMINAL,
}


def may_follow(before: ResourceState, after: ResourceState) -> bool:
    return after in _NEXT.get(before, ())
