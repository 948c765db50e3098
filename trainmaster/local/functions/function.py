"""What a deployment says of one function."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BucketTrigger:
    """Every object finalized in the bucket of this name."""

    bucket: str


@dataclass(frozen=True, kw_only=True)
class TopicTrigger:
    """Every message published to the topic of this id."""

    topic: str


Trigger = BucketTrigger | TopicTrigger


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """Where an event goes that kept failing: the topic of this id, after `max_attempts` deliveries, 5 to 100."""

    topic: str
    max_attempts: int


@dataclass(frozen=True, kw_only=True)
class Function:
    """One deployed function.

    `concurrency` is the most requests that its one instance handles at once.
    With `retry`, an event that the function did not answer with 2xx is delivered again; without, it is dropped.
    Without `dead_letter`, it is delivered again for as long as the subscription keeps it.
    """

    name: str
    entry_point: str
    trigger: Trigger
    timeout_s: int
    memory_mib: int
    concurrency: int
    retry: bool
    dead_letter: DeadLetter | None = None
