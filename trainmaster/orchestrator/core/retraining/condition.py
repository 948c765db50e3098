"""The conditions of rules: a class for each kind, with its checks, what meets it, and the values it provides."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.faults import Fault, PathPart
from trainmaster.orchestrator.core.names import Buckets, is_data
from trainmaster.orchestrator.core.policy.policy import glob_matches
from trainmaster.orchestrator.core.retraining.times import schedule

SAMPLE_TIME = "2026-01-31T12:34:56.000000Z"
SAMPLE_RUN_ID = "sample-20260131t123456-0123456789"
SAMPLE_MANIFEST_URI = f"gs://ledger/manifests/{SAMPLE_RUN_ID}-0123456789.ndjson"
_ANY = "\ue000"
"""A character for private use, which stands for whatever a wildcard matches."""
_RESOURCE = re.compile(
    r"projects/[^/]+/locations/(?P<location>[^/]+)/(?P<collection>[A-Za-z]+)/(?P<id>[^/@]+)(@[^/]+)?"
)


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


class UpstreamEvent(StrEnum):
    """What to wait for from another model."""

    SUCCEEDED = "succeeded"
    PROMOTED = "promoted"


@dataclass(frozen=True, kw_only=True)
class _Condition(ABC):
    """Its fields are those of the condition in the rule's document.

    Attributes:
        subject: the subject in `filling.PLACEHOLDERS` whose placeholders only this kind of condition fills.
    """

    kind: ClassVar[ConditionKind]
    subject: ClassVar[str] = ""

    @property
    def members(self) -> "tuple[Condition, ...]":
        """Itself, or the conditions that it combines."""
        return (self,)  # type: ignore[return-value]  # every class of this module is one of the union

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(member.subject for member in self.members)

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


class Each(StrEnum):
    """What a firing by new data takes, if not everything."""

    FOLDER = "folder"


@dataclass(frozen=True, kw_only=True)
class NewData(_Condition):
    """Objects finalized under `objects`, a `gs://bucket/pattern`: `*` is any characters but '/', `**` any characters.

    Due when all minima are reached and no object arrived for `quiet_s`, or the first arrived `max_wait_s` ago; with
    `each`, in one folder. An object that a pattern of `exclude` matches does not count.
    """

    objects: str
    exclude: tuple[str, ...] = ()
    each: Each | None = None
    min_objects: int = 1
    min_bytes: int = 0
    quiet_s: int = 60
    max_wait_s: int = 3600

    kind = ConditionKind.NEW_DATA

    @property
    def detail(self) -> str:
        return self.objects if self.each is None else f"{self.objects}, each {self.each}"

    @cached_property
    def pattern(self) -> str:
        """The pattern of `objects`; one that ends in `/` matches everything below it."""
        return _whole_pattern(self.objects)

    @cached_property
    def _excluded(self) -> tuple[str, ...]:
        return tuple(map(_whole_pattern, self.exclude))

    @property
    def watched(self) -> str:
        """The text of what it matches: two conditions with the same text match the same objects."""
        return "\n".join((self.pattern, *self._excluded))

    def takes(self, uri: str) -> bool:
        """Whether the object matches. Almost none does, so the pattern's literal prefix is compared first."""
        return (
            uri.startswith(self.pattern.partition("*")[0])
            and glob_matches(self.pattern, uri)
            and not self._excludes(uri)
        )

    def excludes_folder(self, folder_uri: str) -> bool:
        """Whether it takes no object below the folder, `gs://…/`, because a pattern of `exclude` matches them all."""
        return self._excludes(f"{folder_uri}{_ANY}") and self._excludes(f"{folder_uri}{_ANY}/{_ANY}")

    def _excludes(self, uri: str) -> bool:
        return any(glob_matches(pattern, uri) for pattern in self._excluded)

    def faults(self, path: tuple[PathPart, ...], buckets: Buckets) -> Iterator[Fault]:
        bucket, _, name = self.pattern.removeprefix("gs://").partition("/")
        at, value = (*path, "objects"), self.objects
        if bucket in (buckets.inbox, buckets.ledger):
            kept = "requests and rules" if bucket == buckets.inbox else "records"
            problem = f"the service stores its {kept} in this bucket, so rules may not watch it"
            repair = "watch the bucket where the data arrives"
            yield Fault(at=at, problem=problem, value=value, repair=repair)
        elif not any(map(is_data, _samples(name))):
            problem = "it matches only temporary or hidden objects, or markers, and these never count"
            repair = "watch the data itself, and wait for the last object with quiet_s"
            yield Fault(at=at, problem=problem, value=value, repair=repair)
        if self.each is not None and "*" not in name.rpartition("/")[0] and "**" not in name:
            folder = f"gs://{bucket}/{name.rpartition('/')[0]}".rstrip("/")
            problem = "each: folder needs a pattern that matches several folders"
            repair = f"write {folder}/**, or leave out each"
            yield Fault(at=at, problem=problem, value=value, repair=repair)
        for number, excluded in enumerate(self.exclude):
            yield from self._exclude_faults((*path, "exclude", number), excluded, bucket)

    def _exclude_faults(self, at: tuple[PathPart, ...], excluded: str, bucket: str) -> Iterator[Fault]:
        pattern = _whole_pattern(excluded)
        if not excluded.startswith(f"gs://{bucket}/"):
            problem, repair = "no object of this bucket could match objects", f"begin it with gs://{bucket}/"
            yield Fault(at=at, problem=problem, value=excluded, repair=repair)
        elif all(glob_matches(pattern, sample) for sample in _samples(self.pattern)):
            problem, repair = "it excludes everything that objects matches", "write a narrower pattern"
            yield Fault(at=at, problem=problem, value=excluded, repair=repair)

    def data_values(self) -> Mapping[str, str]:
        """A sample value for each placeholder about data, which every firing of a rule with this condition may fill."""
        uri = self.pattern.replace("**", "sample").replace("*", "sample")
        return {
            "data.count": "100",
            "data.bytes": "1000000",
            "data.watermark": SAMPLE_TIME,
            "data.newest_uri": uri,
            "data.newest_dir_uri": uri.rpartition("/")[0] + "/",
            "data.since": SAMPLE_TIME,
            "data.dirs": uri.rpartition("/")[0] + "/",
            "data.manifest_uri": SAMPLE_MANIFEST_URI,
        }


def _whole_pattern(text: str) -> str:
    return f"{text}**" if text.endswith("/") else text


def _samples(pattern: str) -> tuple[str, ...]:
    """Two names that the pattern matches, and that another pattern matches only where it has wildcards too."""
    return tuple(pattern.replace("**", any_text).replace("*", _ANY) for any_text in (_ANY, f"{_ANY}/{_ANY}"))


@dataclass(frozen=True, kw_only=True)
class Schedule(_Condition):
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
class NewImage(_Condition):
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
class Alert(_Condition):
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
        if self.model is None:
            return True
        return any(_same_model(self.model, named) for named in facts["models"].splitlines())

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
class Age(_Condition):
    """The champion of the request's model is older than this."""

    older_than_s: int

    kind = ConditionKind.AGE

    @property
    def detail(self) -> str:
        return f"{self.older_than_s} s"


@dataclass(frozen=True, kw_only=True)
class Upstream(_Condition):
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
class Manual(_Condition):
    """An order that names the rule."""

    kind = ConditionKind.MANUAL

    @property
    def detail(self) -> str:
        return ""

    def matches(self, _: Mapping[str, str]) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class All(_Condition):
    """Several conditions at once. With a schedule, they must hold at its times; without, the last to hold fires."""

    conditions: "tuple[Condition, ...]"

    kind = ConditionKind.ALL

    def __str__(self) -> str:
        return f"all of ({self.detail})"

    @property
    def detail(self) -> str:
        return ", ".join(map(str, self.conditions))

    @property
    def members(self) -> "tuple[Condition, ...]":
        return self.conditions

    @property
    def schedule(self) -> Schedule | None:
        return next((member for member in self.conditions if isinstance(member, Schedule)), None)

    def faults(self, path: tuple[PathPart, ...], buckets: Buckets) -> Iterator[Fault]:
        for place, member in placed_members(self, path):
            yield from member.faults(place, buckets)
            if isinstance(member, Schedule) and member is not self.schedule:
                problem = "`all` has a second schedule, and two times rarely come at once"
                yield Fault(at=place, problem=problem, value=member.cron, repair="keep one of them")

    def sample_values(self, models_bucket: str) -> Mapping[str, str]:
        samples = (member.sample_values(models_bucket) for member in self.conditions)
        return {name: text for sample in samples for name, text in sample.items()}


Condition = NewData | Schedule | NewImage | Alert | Age | Upstream | Manual | All
CONDITIONS: Mapping[str, type[Condition]] = {
    condition.kind: condition for condition in (NewData, Schedule, NewImage, Alert, Age, Upstream, Manual)
}


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
