"""The ports without any service, safe to use from many threads at once."""

import base64
import hashlib
import threading
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import google_crc32c

from trainmaster.orchestrator.core.champions.registration import ModelUpload, ModelVersion
from trainmaster.orchestrator.core.completion.experiment import ExperimentRun
from trainmaster.orchestrator.core.completion.explanation import SERVICE, LogEntry, LogQuery
from trainmaster.orchestrator.core.completion.machine_metrics import MachineMetric, MetricQuery, MetricSeries
from trainmaster.orchestrator.core.errors import (
    ActAsDenied,
    GenerationMoved,
    JobNotFound,
    ObjectGone,
    ObjectTooLarge,
)
from trainmaster.orchestrator.core.job_names import JobKind, job_kind, job_name, job_region, location_region
from trainmaster.orchestrator.core.names import RUN_LABEL, object_uri
from trainmaster.orchestrator.core.notices.deliveries import Answer
from trainmaster.orchestrator.core.notices.notice import Notice
from trainmaster.orchestrator.core.notices.payloads import Post
from trainmaster.orchestrator.core.policy.pools import PoolState
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState, Trial
from trainmaster.orchestrator.core.runs.states import END_OF
from trainmaster.orchestrator.ports.objects import Listed, Stored
from trainmaster.orchestrator.ports.services import Clock

CHIEF = "workerpool0-0"


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode("ascii")


class ManualClock:
    """A clock that only moves when `advance` is called; `compute` uses processor time too."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._processor_s = 0.0

    def now(self) -> datetime:
        return self._now

    def wait(self, seconds: float) -> None:
        """Return at once: whatever is waited for has happened, or needs the test to `advance` the clock."""

    def processor_s(self) -> float:
        return self._processor_s

    def advance(self, by: timedelta) -> None:
        self._now += by

    def compute(self, seconds: float) -> None:
        """Let that much time pass, all of it spent computing."""
        self._processor_s += seconds
        self.advance(timedelta(seconds=seconds))


class MemoryObjects:
    """Buckets in memory, with Cloud Storage's generations and preconditions; overwritten generations are not kept.

    `copied_at_once`: how many bytes one call copies; None: all of them.
    """

    copied_at_once: int | None = None

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[tuple[str, str], Listed] = {}
        self._contents: dict[tuple[str, str], bytes] = {}
        # Sorted names per bucket: a listing costs as much as it shows, however many objects there are.
        self._names: defaultdict[str, list[str]] = defaultdict(list)
        self._generation = 0

    def read(self, bucket: str, name: str, generation: int | None = None, *, max_bytes: int) -> Stored:
        with self._lock:
            found = self._objects.get((bucket, name))
            content = self._contents.get((bucket, name), b"")
        if found is None or generation not in (None, found.generation):
            raise ObjectGone(object_uri(bucket, name), generation)
        if len(content) > max_bytes:
            raise ObjectTooLarge(object_uri(bucket, name), max_bytes)
        return Stored(content=content, generation=found.generation)

    def describe(self, bucket: str, name: str, generation: int | None = None) -> Listed:
        with self._lock:
            found = self._objects.get((bucket, name))
        if found is None or generation not in (None, found.generation):
            raise ObjectGone(object_uri(bucket, name), generation)
        return found

    def write(
        self,
        bucket: str,
        name: str,
        content: bytes,
        *,
        if_generation: int | None,
        metadata: Mapping[str, str] | None = None,
        content_type: str = "application/json",  # noqa: ARG002 - only readers outside need it
    ) -> int:
        with self._lock:
            found = self._objects.get((bucket, name))
            if if_generation is not None and if_generation != (found.generation if found else 0):
                raise GenerationMoved(object_uri(bucket, name), if_generation)
            return self._put(bucket, name, content, metadata or {}).generation

    def _put(self, bucket: str, name: str, content: bytes, metadata: Mapping[str, str]) -> Listed:
        if (bucket, name) not in self._objects:
            insort(self._names[bucket], name)
        self._generation += 1
        self._contents[bucket, name] = content
        self._objects[bucket, name] = Listed(
            name=name,
            generation=self._generation,
            size_bytes=len(content),
            created_at=self._clock.now(),
            crc32c=_base64(google_crc32c.value(content).to_bytes(4)),
            md5=_base64(hashlib.md5(content, usedforsecurity=False).digest()),
            metadata=dict(metadata),
        )
        return self._objects[bucket, name]

    def copy(
        self, source: tuple[str, str, int], bucket: str, name: str, *, token: str | None = None
    ) -> Listed | str:
        with self._lock:
            from_bucket, from_name, generation = source
            found = self._objects.get((from_bucket, from_name))
            if found is None or found.generation != generation:
                raise ObjectGone(object_uri(from_bucket, from_name), generation)
            if (bucket, name) in self._objects:
                raise GenerationMoved(object_uri(bucket, name), 0)
            done = int(token or 0) + (self.copied_at_once or found.size_bytes)
            if done < found.size_bytes:
                return str(done)
            return self._put(bucket, name, self._contents[from_bucket, from_name], found.metadata)

    def delete(self, bucket: str, name: str, *, if_generation: int | None = None) -> None:
        with self._lock:
            found = self._objects.get((bucket, name))
            if found is None:
                return
            if if_generation not in (None, found.generation):
                raise GenerationMoved(object_uri(bucket, name), if_generation or 0)
            del self._objects[bucket, name], self._contents[bucket, name]
            names = self._names[bucket]
            del names[bisect_left(names, name)]

    def listing(self, bucket: str, prefix: str, after: str = "") -> Iterator[Listed]:
        with self._lock:
            names = (name for name in self._beginning(bucket, prefix) if name > after)
            found = [self._objects[bucket, name] for name in names]
        yield from found

    def _beginning(self, bucket: str, prefix: str) -> Iterator[str]:
        names = self._names.get(bucket, [])
        position = bisect_left(names, prefix)
        while position < len(names) and names[position].startswith(prefix):
            yield names[position]
            position += 1


class MemoryJobs:
    """Jobs that change only when `become` moves them.

    A job whose account is in `denied_accounts` is refused as Vertex AI refuses it without the permission. With
    `cancels_late`, a cancelled job only gets into `asked_to_cancel`, and continues until `become` ends it.
    """

    def __init__(self, clock: Clock, *, project: str) -> None:
        self._clock = clock
        self._project = project
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        # Names only, in the order of submission: of a million jobs, few are active at the same time.
        self._unended: dict[str, None] = {}
        self._created = 0
        self.denied_accounts: set[str] = set()
        self.cancels_late = False
        self.asked_to_cancel: list[str] = []
        self.pools: dict[str, PoolState] = {}
        self.experiment_runs: dict[str, ExperimentRun] = {}
        self._of_run: defaultdict[str, list[str]] = defaultdict(list)

    def submit(self, submission: Submission) -> Job:
        body: Mapping[str, Any] = submission.body
        with self._lock:
            spec = body["jobSpec" if submission.kind is JobKind.CUSTOM else "trialJobSpec"]
            account = spec.get("serviceAccount")
            if account in self.denied_accounts:
                reason = (
                    f"You do not have permission to act as service_account: {account}. (or it may not exist)."
                )
                raise ActAsDenied(400, reason, account)
            self._created += 1
            job_id = str(999 + self._created)
            job = Job(
                name=job_name(self._project, location_region(submission.parent), submission.kind, job_id),
                state=JobState.PENDING,
                display_name=body["displayName"],
                labels=body["labels"],
                output_uri=spec["baseOutputDirectory"]["outputUriPrefix"],
                create_time=self._clock.now(),
            )
            self._jobs[job.name] = job
            self._unended[job.name] = None
            self._of_run[job.labels.get(RUN_LABEL, "")].append(job.name)
        return job

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        with self._lock:
            # As the service lists them: without their trials.
            return [
                replace(self._jobs[name], trials=())
                for name in self._of_run.get(run_id, ())
                if name in self._jobs and job_kind(name) is kind and job_region(name) in regions
            ]

    def active(self, kind: JobKind, region: str) -> Sequence[Job]:
        return [
            replace(job, trials=(), output_uri="", display_name="")
            for job in self.going()
            if job_kind(job.name) is kind and job_region(job.name) == region and RUN_LABEL in job.labels
        ]

    def read(self, name: str) -> Job:
        with self._lock:
            if name not in self._jobs:
                raise JobNotFound(name)
            return self._jobs[name]

    def cancel(self, name: str) -> None:
        with self._lock:
            known = name in self._jobs and self._jobs[name].state not in END_OF
            self.asked_to_cancel += [name] * known
        if known and not self.cancels_late:
            self.become(name, JobState.CANCELLED, ran=False)

    def pool_states(self, region: str) -> Sequence[PoolState]:
        return [one for name, one in self.pools.items() if name.split("/")[3] == region]

    def keep_experiment_run(self, run: ExperimentRun) -> None:
        self.experiment_runs[run.id] = run

    def delete_pool(self, name: str) -> None:
        self.pools.pop(name, None)

    def become(
        self,
        name: str,
        state: JobState,
        *,
        error: Failure | None = None,
        trials: Sequence[Trial] | None = None,
        ran: bool = True,
    ) -> Job:
        """Move the job, and set the times that the service would set. `trials` None leaves them.

        `ran` False: no replica of it ever started.

        Raises:
            JobNotFound: no job has that name.
        """
        job, now = MemoryJobs.read(self, name), self._clock.now()  # no call of a client
        went_on = ran and state not in (JobState.QUEUED, JobState.PENDING)
        ended = state in END_OF
        moved = replace(
            job,
            state=state,
            error=error,
            start_time=job.start_time or (now if went_on else None),
            end_time=now if ended else None,
            trials=job.trials if trials is None else tuple(trials),
        )
        with self._lock:
            self._jobs[name] = moved
            if ended:
                self._unended.pop(name, None)
            else:
                self._unended[name] = None
        return moved

    def remove(self, name: str) -> None:
        with self._lock:
            del self._jobs[name]
            self._unended.pop(name, None)

    def going(self) -> Sequence[Job]:
        """Every job that has not ended, in the order of submission."""
        with self._lock:
            return [self._jobs[name] for name in self._unended]

    def all(self) -> Sequence[Job]:
        with self._lock:
            return list(self._jobs.values())


class MemoryJobLogs:
    """Logs with the lines that were written to them; for every other job, the service's line about its end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._written: defaultdict[tuple[str, str | None], list[LogEntry]] = defaultdict(list)

    def write(self, job_id: str, task: str, *lines: str, trial_id: str | None = None) -> None:
        """Write lines as errors, each as an entry at the clock's time; without lines, the job's log is late."""
        entries = self._written[job_id, trial_id]
        entries += (
            LogEntry(task=task, at=self._clock.now(), insert_id=f"{number:06}", text=line)
            for number, line in enumerate(lines, start=len(entries))
        )

    def read(self, query: LogQuery) -> Sequence[LogEntry]:
        place = (query.job_id, query.trial_id)
        if place not in self._written:
            return (LogEntry(task=SERVICE, at=self._clock.now(), insert_id="", text="Job failed."),)
        return [each for each in self._written[place] if query.replica in (None, each.task)]

    def silent_jobs(self, job_ids: Sequence[str], since: datetime) -> Sequence[str]:
        wrote = {
            key for (key, _), entries in self._written.items() if any(one.at >= since for one in entries)
        }
        return [key for key in job_ids if key not in wrote]


class MemoryMachineMetrics:
    """Metrics with the series that were reported; of every other job, its processors half used up to the end."""

    def __init__(self) -> None:
        self._reported: defaultdict[MachineMetric, list[MetricSeries]] = defaultdict(list)
        self.queries: list[MetricQuery] = []
        self.failure: Exception | None = None

    def report(
        self, metric: MachineMetric, job_id: str, *values: float, at: datetime, replica: str = CHIEF
    ) -> None:
        """Report these values, a minute apart and the last of them then; without values, the job's are late."""
        times = (at - timedelta(minutes=ago) for ago in reversed(range(len(values))))
        points = tuple(zip(times, values, strict=True))
        self._reported[metric].append(MetricSeries(job_id=job_id, replica=replica, points=points))

    def list_time_series(self, query: MetricQuery) -> Sequence[MetricSeries]:
        self.queries.append(query)
        if self.failure is not None:
            raise self.failure
        every = self._reported.values()
        if query.job_id is None or any(one.job_id == query.job_id for of_one in every for one in of_one):
            found = self._reported[query.metric]
            return [one for one in found if query.job_id in (None, one.job_id) and one.points]
        points = ((query.until, 0.5),)
        is_cpu = query.metric is MachineMetric.CPU
        return [MetricSeries(job_id=query.job_id, replica=CHIEF, points=points)] * is_cpu


class MemoryModels:
    """A Model Registry in memory. Each upload ends, and its version is there, UPLOAD_S after it began.

    `failure`: why uploads that end from now on fail.
    """

    UPLOAD_S = 30
    failure: str = ""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.uploads: dict[str, ModelUpload] = {}
        self._ends_at: dict[str, datetime] = {}
        self._numbers: dict[str, int] = {}
        self._failed: dict[str, str] = {}
        self.aliases: dict[tuple[str, str], int] = {}

    def versions(self, model_id: str) -> Mapping[int, ModelUpload]:
        """The versions that are there, by number."""
        for operation, ends_at in self._ends_at.items():
            if ends_at <= self._clock.now() and operation not in self._numbers | self._failed:
                if self.failure:
                    self._failed[operation] = self.failure
                else:
                    self._numbers[operation] = 1 + self._last(self.uploads[operation].model_id)
        return {
            number: self.uploads[operation]
            for operation, number in sorted(self._numbers.items(), key=lambda item: item[1])
            if self.uploads[operation].model_id == model_id
        }

    def _last(self, model_id: str) -> int:
        numbers = (self._numbers[each] for each in self._numbers if self.uploads[each].model_id == model_id)
        return max(numbers, default=0)

    def aliased_run(self, model_id: str, alias: str = "champion") -> str | None:
        number = self.aliases.get((model_id, alias))
        return None if number is None else self.versions(model_id)[number].labels[RUN_LABEL]

    def versions_of_run(self, model_id: str, run_id: str) -> Sequence[ModelVersion] | None:
        found = self.versions(model_id)
        of_run = [number for number, upload in found.items() if upload.labels[RUN_LABEL] == run_id]
        return [self._version(model_id, number) for number in of_run] if found else None

    def _version(self, model_id: str, number: int) -> ModelVersion:
        held = (alias for (model, alias), one in self.aliases.items() if (model, one) == (model_id, number))
        return ModelVersion(model=f"projects/1/models/{model_id}", number=number, aliases=tuple(held))

    def upload(self, upload: ModelUpload, *, is_first: bool) -> str | None:
        is_known = any(other.model_id == upload.model_id for other in self.uploads.values())
        if is_first and is_known and set(self._ends_at) - set(self._failed):
            return None
        operation = f"operations/{len(self.uploads) + 1}"
        self.uploads[operation] = upload
        self._ends_at[operation] = self._clock.now() + timedelta(seconds=self.UPLOAD_S)
        return operation

    def why_upload_failed(self, operation: str) -> str:
        self.versions("")
        return self._failed.get(operation, "")

    def version_with_alias(self, model_id: str, alias: str) -> ModelVersion | None:
        number = self.aliases.get((model_id, alias))
        return None if number is None else self._version(model_id, number)

    def change_alias(self, version: ModelVersion, change: str) -> None:
        model_id = version.model.rpartition("/")[2]
        if change.startswith("-"):
            self.aliases.pop((model_id, change[1:]), None)
        else:
            self.aliases[model_id, change] = version.number


@dataclass
class MemoryNotices:
    """Keeps what was published, in order."""

    published: list[Notice] = field(default_factory=list)

    def publish(self, notice: Notice) -> None:
        self.published.append(notice)


@dataclass
class MemoryReceivers:
    """Receivers that answer by the host of the URL: with these statuses in order, then with the last one; else with 200."""

    secrets: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[int]] = field(default_factory=dict)
    posts: list[Post] = field(default_factory=list)

    def secret(self, name: str) -> str | None:
        return self.secrets.get(name)

    def post(self, post: Post) -> Answer:
        self.posts.append(post)
        statuses = self.answers.get(post.url.split("/")[2], [200])
        return Answer(status=statuses.pop(0) if len(statuses) > 1 else statuses[0])
