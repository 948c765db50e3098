"""The condition `new_data`: which objects count, and what a firing takes of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from trainmaster.orchestrator.core.documents.faults import Fault, PathPart
from trainmaster.orchestrator.core.names import Buckets, is_data
from trainmaster.orchestrator.core.policy.policy import glob_matches
from trainmaster.orchestrator.core.retraining.base import (
    SAMPLE_RUN_ID,
    SAMPLE_TIME,
    BaseCondition,
    ConditionKind,
)

_ANY = "\ue000"
"""A character for private use, which stands for whatever a wildcard matches."""


class Each(StrEnum):
    """What a firing by new data takes, if not everything."""

    FOLDER = "folder"


@dataclass(frozen=True, kw_only=True)
class NewData(BaseCondition):
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
    def _exclude_patterns(self) -> tuple[str, ...]:
        return tuple(map(_whole_pattern, self.exclude))

    @property
    def watched(self) -> str:
        """The text of what it matches: two conditions with the same text match the same objects."""
        return "\n".join((self.pattern, *self._exclude_patterns))

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
        return any(glob_matches(pattern, uri) for pattern in self._exclude_patterns)

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
            problem = repair = ""
            if not excluded.startswith(f"gs://{bucket}/"):
                problem = "no object of this bucket could match objects"
                repair = f"begin it with gs://{bucket}/"
            elif all(glob_matches(_whole_pattern(excluded), sample) for sample in _samples(self.pattern)):
                problem, repair = "it excludes everything that objects matches", "write a narrower pattern"
            if problem:
                yield Fault(at=(*path, "exclude", number), problem=problem, value=excluded, repair=repair)

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
            "data.manifest_uri": f"gs://ledger/manifests/{SAMPLE_RUN_ID}-0123456789.ndjson",
        }


def _whole_pattern(text: str) -> str:
    return f"{text}**" if text.endswith("/") else text


def _samples(pattern: str) -> tuple[str, ...]:
    """Two names that the pattern matches, and that another pattern matches only where it has wildcards too."""
    return tuple(pattern.replace("**", any_text).replace("*", _ANY) for any_text in (_ANY, f"{_ANY}/{_ANY}"))
