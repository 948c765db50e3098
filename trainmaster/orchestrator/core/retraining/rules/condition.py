"""What a rule may wait for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.core.policy.policy import matches

DEFAULT_QUIET_S = 60
DEFAULT_MAX_WAIT_S = 3600


class ConditionKind(StrEnum):
    """The kinds, as a rule's document spells them."""

    NEW_DATA = "new_data"
    SCHEDULE = "schedule"
    NEW_IMAGE = "new_image"
    ALERT = "alert"
    AGE = "age"
    UPSTREAM = "upstream"
    MANUAL = "manual"


class UpstreamEvent(StrEnum):
    """What another model's rule waits for."""

    SUCCEEDED = "succeeded"
    PROMOTED = "promoted"


@dataclass(frozen=True, kw_only=True)
class NewData:
    """Objects finalized under `objects`, a `gs://bucket/pattern`: `*` any characters but '/', `**` any.

    Due when all minima are reached and nothing came for `quiet`, or the first came `max_wait` ago.
    """

    objects: str
    min_objects: int = 1
    min_bytes: int = 0
    quiet: timedelta = timedelta(seconds=DEFAULT_QUIET_S)
    max_wait: timedelta = timedelta(seconds=DEFAULT_MAX_WAIT_S)

    kind = ConditionKind.NEW_DATA

    @property
    def pattern(self) -> str:
        """The objects' pattern; one that ends in `/` means everything below."""
        return f"{self.objects}**" if self.objects.endswith("/") else self.objects

    @property
    def bucket(self) -> str:
        return split_object_uri(self.objects)[0]

    def takes(self, uri: str) -> bool:
        """Whether the object is of the pattern. Almost every object is not, so the plain beginning goes first."""
        return uri.startswith(self.pattern.partition("*")[0]) and matches(self.pattern, uri)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A cron expression of five fields, by the clocks of `time_zone`."""

    cron: str
    time_zone: str = "Etc/UTC"

    kind = ConditionKind.SCHEDULE


@dataclass(frozen=True, kw_only=True)
class NewImage:
    """A push to an image's repository; `tag` may hold `*`."""

    repository: str
    tag: str

    kind = ConditionKind.NEW_IMAGE


@dataclass(frozen=True, kw_only=True)
class Alert:
    """An alert by its policy's name (`*` any characters) or by the model it is about, or by both."""

    policy: str | None = None
    model: str | None = None

    kind = ConditionKind.ALERT


@dataclass(frozen=True, kw_only=True)
class Age:
    """The champion of the request's model is older than this."""

    older_than: timedelta

    kind = ConditionKind.AGE


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """A run of another model succeeded, or its champion changed."""

    model_name: str
    event: UpstreamEvent

    kind = ConditionKind.UPSTREAM


@dataclass(frozen=True, kw_only=True)
class Manual:
    """An order that names the rule."""

    kind = ConditionKind.MANUAL


Condition = NewData | Schedule | NewImage | Alert | Age | Upstream | Manual


# Any: the schema vouches for the types.
def condition_from(document: Mapping[str, Any]) -> Condition:
    """The condition of one entry of `when`, which the schema accepts."""
    ((kind, fields),) = document.items()
    return _READERS[ConditionKind(kind)](fields)


def _new_data(fields: Mapping[str, Any]) -> NewData:
    return NewData(
        objects=fields["objects"],
        min_objects=fields.get("min_objects", 1),
        min_bytes=fields.get("min_bytes", 0),
        quiet=timedelta(seconds=fields.get("quiet_s", DEFAULT_QUIET_S)),
        max_wait=timedelta(seconds=fields.get("max_wait_s", DEFAULT_MAX_WAIT_S)),
    )


_READERS: Mapping[ConditionKind, Callable[[Mapping[str, Any]], Condition]] = {
    ConditionKind.NEW_DATA: _new_data,
    ConditionKind.SCHEDULE: lambda fields: Schedule(**fields),
    ConditionKind.NEW_IMAGE: lambda fields: NewImage(**fields),
    ConditionKind.ALERT: lambda fields: Alert(**fields),
    ConditionKind.AGE: lambda fields: Age(older_than=timedelta(seconds=fields["older_than_s"])),
    ConditionKind.UPSTREAM: lambda fields: Upstream(
        model_name=fields["model_name"], event=UpstreamEvent(fields["event"])
    ),
    ConditionKind.MANUAL: lambda _: Manual(),
}
