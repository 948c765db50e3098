"""The conditions of rules: a class for each kind, with its checks, what meets it, and the values it provides."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.faults import Fault, PathPart
from trainmaster.orchestrator.core.names import Buckets
from trainmaster.orchestrator.core.policy.policy import glob_matches
from trainmaster.orchestrator.core.retraining.base import SAMPLE_RUN_ID, BaseCondition, ConditionKind
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.times import schedule

_RESOURCE = re.compile(
    r"projects/[^/]+/locations/(?P<location>[^/]+)/(?P<collection>[A-Za-z]+)/(?P<id>[^/@]+)(@[^/]+)?"
)


class UpstreamEvent(StrEnum):
    """What to wait for from another model."""

    SUCCEEDED = "succeeded"
    PROMOTED = "promoted"


@dataclass(frozen=True, kw_only=True)
class Schedule(BaseCondition):
    """A cron expression of five fields, in local time of `time_zone`."""

    cron: str
    time_zone: str = "Etc/UTC"

    kind = ConditionKind.SCHEDULE

    @property
    def detail(self) -> str:
        return f"{self.cron} {self.time_zone}"

    def faults(self, path: tuple[PathPart, ...], _buckets: Buckets) -> Iterator[Fault]:
        return schedule.schedule_faults(self.cron, self.time_zone, path)

    def last_due(self, until: datetime) -> datetime | None:
        """See `schedule.last_due`."""
        return schedule.last_due(self.cron, self.time_zone, until)

    def next_due(self, after: datetime) -> datetime | None:
        """See `schedule.next_due`."""
        return schedule.next_due(self.cron, self.time_zone, after)


@dataclass(frozen=True, kw_only=True)
class NewImage(BaseCondition):
    """A push to an image's repository; `tag` may hold `*`."""

    repository: str
    tag: str

    kind = ConditionKind.NEW_IMAGE
    subject = "image"

    @property
    def detail(self) -> str:
        return f"{self.repository}:{self.tag}"

    def matches(self, facts: Mapping[str, str]) -> bool:
        return self.repository == facts["repository"] and glob_matches(self.tag, facts["tag"])

    def sample_values(self, _: str) -> Mapping[str, str]:
        digest = f"sha256:{'0123456789abcdef' * 4}"
        return {
            "image.uri": f"{self.repository}@{digest}",
            "image.digest": digest,
            "image.tag": self.tag.replace("*", "sample"),
        }


@dataclass(frozen=True, kw_only=True)
class Alert(BaseCondition):
    """An alert, matched by its policy's name (`*` is any characters), by the model it is about, or by both."""

    policy: str | None = None
    model: str | None = None

    kind = ConditionKind.ALERT
    subject = "alert"

    @property
    def detail(self) -> str:
        return " ".join(filter(None, (self.policy, self.model)))

    def matches(self, facts: Mapping[str, str]) -> bool:
        # A policy's name is free text, in which '/' has no special meaning.
        if self.policy is not None and not glob_matches(re.sub(r"\*+", "**", self.policy), facts["policy"]):
            return False
        names = facts["models"].splitlines()
        return self.model is None or any(_same_model(self.model, named) for named in names)

    def sample_values(self, _: str) -> Mapping[str, str]:
        return {
            "alert.policy": (self.policy or "sample policy").replace("*", "sample"),
            "alert.incident_id": "0.sample",
            "alert.summary": "a sample of a summary",
        }


def _same_model(wanted: str, named: str) -> bool:
    """Whether the alert's name denotes the wanted model: the same text, or the same resource.

    The service writes the project's number where a user writes its id, and only the model's id in labels.
    A version, `@2`, is not part of the name.
    """
    if glob_matches(wanted, named) or glob_matches(wanted, named.partition("@")[0]):
        return True
    want, name = _RESOURCE.fullmatch(wanted), _RESOURCE.fullmatch(named)
    if want is not None and name is not None:
        return want.group("location", "collection", "id") == name.group("location", "collection", "id")
    return (want is not None and named == want["id"]) or (name is not None and wanted == name["id"])


@dataclass(frozen=True, kw_only=True)
class Age(BaseCondition):
    """The champion of the request's model is older than this."""

    older_than_s: int

    kind = ConditionKind.AGE

    @property
    def detail(self) -> str:
        return f"{self.older_than_s} s"


@dataclass(frozen=True, kw_only=True)
class Upstream(BaseCondition):
    """A run of another model succeeded, or its champion changed."""

    model_name: str
    event: UpstreamEvent

    kind = ConditionKind.UPSTREAM
    subject = "upstream"

    @property
    def detail(self) -> str:
        return f"{self.model_name} {self.event}"

    def matches(self, facts: Mapping[str, str]) -> bool:
        return (self.model_name, self.event) == (facts["model_name"], facts["event"])

    def sample_values(self, models_bucket: str) -> Mapping[str, str]:
        return {
            "upstream.model_name": self.model_name,
            "upstream.run_id": SAMPLE_RUN_ID,
            "upstream.model_uri": f"gs://{models_bucket}/{self.model_name}/{SAMPLE_RUN_ID}/model/",
        }


@dataclass(frozen=True, kw_only=True)
class Manual(BaseCondition):
    """An order that names the rule."""

    kind = ConditionKind.MANUAL
    detail = ""

    def matches(self, _: Mapping[str, str]) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class All(BaseCondition):
    """Several conditions at once. With a schedule, they must hold at its times; without, the last to hold fires."""

    conditions: "tuple[Condition, ...]"

    kind = ConditionKind.ALL

    def __str__(self) -> str:
        return f"all of ({self.detail})"

    @property
    def detail(self) -> str:
        return ", ".join(map(str, self.conditions))

    @property
    def schedule(self) -> Schedule | None:
        return next((member for member in self.conditions if isinstance(member, Schedule)), None)

    def faults(self, path: tuple[PathPart, ...], buckets: Buckets) -> Iterator[Fault]:
        for place, member in placed_members(self, path):
            yield from member.faults(place, buckets)
            if isinstance(member, Schedule) and member is not self.schedule:
                problem = "`all` has a second schedule, and two times rarely come at once"
                yield Fault(at=place, problem=problem, value=member.cron, repair="keep one of them")
            if isinstance(member, NewData) and member.each is not None:
                problem = "`all` takes everything that waits, so it cannot fire for each folder"
                repair = "leave out each, or write the condition beside `all`"
                yield Fault(at=(*place, "each"), problem=problem, value=member.each.value, repair=repair)

    def sample_values(self, models_bucket: str) -> Mapping[str, str]:
        samples = (member.sample_values(models_bucket) for member in self.conditions)
        return {name: text for sample in samples for name, text in sample.items()}


Condition = NewData | Schedule | NewImage | Alert | Age | Upstream | Manual | All
CONDITIONS: Mapping[str, type[Condition]] = {
    condition.kind: condition for condition in (NewData, Schedule, NewImage, Alert, Age, Upstream, Manual)
}


def members_of(condition: Condition) -> tuple[Condition, ...]:
    """The condition itself, or those that it combines."""
    return condition.conditions if isinstance(condition, All) else (condition,)


def placed_members(
    condition: Condition, path: tuple[PathPart, ...]
) -> Iterator[tuple[tuple[PathPart, ...], Condition]]:
    """The condition with its path; of `all`, its conditions with theirs."""
    if not isinstance(condition, All):
        yield path, condition
        return
    for index, member in enumerate(condition.conditions):
        yield (*path, index, member.kind), member


# Any: an entry that is not a condition is an error.
def condition_from(entry: Any) -> Condition:
    """The condition of one entry of `when`.

    Raises:
        ValueError: the entry is not a condition.
    """
    try:
        ((kind, fields),) = entry.items()
        if kind == ConditionKind.ALL:
            return All(conditions=tuple(map(condition_from, fields)))
        return decoded(CONDITIONS[kind], {} if fields is None else fields)  # `manual:` is `manual: {}`
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a condition: {entry!r}") from error
