"""What every condition of a rule is."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from trainmaster.orchestrator.core.documents.faults import Fault, PathPart
from trainmaster.orchestrator.core.names import Buckets

SAMPLE_TIME = "2026-01-31T12:34:56.000000Z"
SAMPLE_RUN_ID = "sample-20260131t123456-0123456789"


class ConditionKind(StrEnum):
    """The kinds of conditions, as rules spell them."""

    NEW_DATA = "new_data"
    SCHEDULE = "schedule"
    NEW_IMAGE = "new_image"
    ALERT = "alert"
    AGE = "age"
    UPSTREAM = "upstream"
    MANUAL = "manual"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class BaseCondition(ABC):
    """Its fields are those of the condition in the rule's document.

    Attributes:
        subject: the subject in `filling.PLACEHOLDERS` whose placeholders only this kind of condition fills.
    """

    kind: ClassVar[ConditionKind]
    subject: ClassVar[str] = ""

    def __str__(self) -> str:
        """In a few words: `new_data gs://…/**`, `schedule 0 3 * * 1 Europe/Amsterdam`."""
        return f"{self.kind} {self.detail}".rstrip()

    @property
    @abstractmethod
    def detail(self) -> str:
        """What a user needs beside the kind to know the condition; empty if nothing."""

    def faults(self, _path: tuple[PathPart, ...], _buckets: Buckets) -> Iterator[Fault]:
        """The faults that the schema cannot find. `path` is the condition's; the buckets are the deployment's."""
        yield from ()

    def matches(self, _: Mapping[str, str]) -> bool:
        """Whether a signal of its kind with these facts meets it. Conditions that a tick decides match no signal."""
        return False

    def sample_values(self, _: str) -> Mapping[str, str]:
        """A sample value for each placeholder of the subject; the argument is the models bucket."""
        return {}
