"""One suite for every reader of jobs' logs: in memory, and Cloud Logging's client against the emulator."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import httpx
import pytest

from tests.contract.proxy import Proxy, ProxyFault, proxy_to
from tests.contract.world import PROJECT, START
from tests.fixtures import fixture_of
from tests.memory import ManualClock, MemoryJobLogs
from trainmaster.orchestrator.adapters import cloud_logging
from trainmaster.orchestrator.adapters.cloud_logging import CloudJobLogs
from trainmaster.orchestrator.core.completion.explanation import LogEntry, LogQuery, has_arrived
from trainmaster.orchestrator.core.errors import AccessDenied, ServiceFailed
from trainmaster.orchestrator.ports.services import JobLogs
from trainstack import logging

LIST = "POST /v2/entries:list"
_numbers = itertools.count(1)


logging_url = fixture_of(logging.serve)


@pytest.fixture
def proxy(logging_url: str) -> Iterator[Proxy]:
    with proxy_to(logging_url) as proxy:
        yield proxy


@dataclass
class Written:
    """Writes entries as the service does."""

    url: str

    def write(self, job_id: str, task: str, *lines: str, trial_id: str | None = None) -> None:
        now = datetime.now(UTC)
        self.post(
            [
                {
                    **_entry(job_id, task, now + timedelta(microseconds=number), trial_id),
                    "jsonPayload": {"message": line, "levelname": "ERROR", "attrs": {"tag": task}},
                    "severity": "ERROR",
                }
                for number, line in enumerate(lines)
            ]
        )

    def post(self, entries: Sequence[Mapping[str, object]]) -> None:
        for first in range(0, len(entries), 500):
            body = {"entries": entries[first : first + 500]}
            httpx.post(f"{self.url}/v2/entries:write", json=body, timeout=60).raise_for_status()


def _entry(job_id: str, task: str, at: datetime, trial_id: str | None = None) -> dict[str, object]:
    labels = {"ml.googleapis.com/trial_id": trial_id} if trial_id else {}
    return {
        "insertId": f"{next(_numbers):09}",
        "logName": f"projects/{PROJECT}/logs/{task}",
        "resource": {
            "type": "ml_job",
            "labels": {"job_id": job_id, "project_id": PROJECT, "task_name": task},
        },
        "labels": labels,
        "timestamp": at.isoformat(),
    }


class Writer(Protocol):
    def write(self, job_id: str, task: str, *lines: str, trial_id: str | None = None) -> None: ...


@pytest.fixture(params=["memory", "cloud"])
def reader_and_writer(request: pytest.FixtureRequest) -> tuple[JobLogs, Writer]:
    if request.param == "memory":
        memory = MemoryJobLogs(ManualClock(START))
        return memory, memory
    url = request.getfixturevalue("logging_url")
    return CloudJobLogs(project=PROJECT, endpoint=url), Written(url)


@pytest.fixture
def job_id() -> str:
    return str(4_000_000 + next(_numbers))


def told(entries: Sequence[LogEntry]) -> list[tuple[str, str]]:
    ordered = sorted(entries, key=lambda entry: (entry.at, entry.insert_id))
    return [(entry.task, entry.text) for entry in ordered]


def test_what_replicas_wrote_is_read_and_of_one_alone_where_it_is_named(
    reader_and_writer: tuple[JobLogs, Writer], job_id: str
) -> None:
    logs, writer = reader_and_writer
    writer.write(job_id, "workerpool0-0", "one", 'Value "two"')
    writer.write(job_id, "workerpool1-0", "three")
    writer.write(f"{job_id}0", "workerpool0-0", "another job's")
    everything = told(logs.read(LogQuery(job_id=job_id)))
    assert everything == [
        ("workerpool0-0", "one"),
        ("workerpool0-0", 'Value "two"'),
        ("workerpool1-0", "three"),
    ]
    assert told(logs.read(LogQuery(job_id=job_id, replica="workerpool1-0"))) == everything[2:]


def test_a_trial_of_a_tuning_is_read_alone(reader_and_writer: tuple[JobLogs, Writer], job_id: str) -> None:
    logs, writer = reader_and_writer
    writer.write(job_id, "workerpool0-0", "of the first", trial_id="1")
    writer.write(job_id, "workerpool0-0", "of the second", trial_id="2")
    assert told(logs.read(LogQuery(job_id=job_id, trial_id="2"))) == [("workerpool0-0", "of the second")]


def test_jobs_that_have_logged_nothing_are_found_together(
    reader_and_writer: tuple[JobLogs, Writer], job_id: str
) -> None:
    logs, writer = reader_and_writer
    writer.write(
        job_id, "workerpool0-0", *map(str, range(cloud_logging.PAGE_ENTRIES + 1))
    )  # they fill the first page
    writer.write(f"{job_id}0", "workerpool0-0", "one")
    since, others = START - timedelta(hours=1), [f"{job_id}1", f"{job_id}2"]
    assert logs.silent_jobs([job_id, f"{job_id}0", *others], since) == others
    assert list(logs.silent_jobs([job_id], datetime.now(UTC) + timedelta(hours=1))) == [job_id]


def test_a_log_that_is_late_is_empty(reader_and_writer: tuple[JobLogs, Writer], job_id: str) -> None:
    logs, writer = reader_and_writer
    if isinstance(writer, MemoryJobLogs):
        writer.write(job_id, "workerpool0-0")
    assert list(logs.read(LogQuery(job_id=job_id))) == []


def test_all_lines_of_the_service_are_read_others_by_severity(logging_url: str, job_id: str) -> None:
    now = datetime.now(UTC)
    texts = {"service": "Job failed.", "workerpool0-0": "epoch 1"}
    Written(logging_url).post(
        [
            {**_entry(job_id, task, now), "textPayload": text, "severity": "INFO"}
            for task, text in texts.items()
        ]
    )
    logs = CloudJobLogs(project=PROJECT, endpoint=logging_url)
    entries = logs.read(LogQuery(job_id=job_id, since=now - timedelta(hours=1)))
    assert told(entries) == [("service", "Job failed.")]
    assert has_arrived(entries)
    assert list(logs.read(LogQuery(job_id=job_id, since=now + timedelta(hours=1)))) == []


@pytest.mark.parametrize(
    ("page", "written", "first", "pages"), [(None, 1200, 200, 2), (3, 20, 8, cloud_logging.MAX_PAGES)]
)
def test_of_a_long_log_the_last_entries_are_read_in_no_more_pages_than_are_allowed(
    proxy: Proxy,
    job_id: str,
    page: int | None,
    written: int,
    first: int,
    pages: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cloud_logging, "PAGE_ENTRIES", page or cloud_logging.PAGE_ENTRIES)
    Written(proxy.target).write(job_id, "workerpool0-0", *map(str, range(written)))
    entries = CloudJobLogs(project=PROJECT, endpoint=proxy.url).read(LogQuery(job_id=job_id))
    assert [text for _, text in told(entries)] == [str(number) for number in range(first, written)]
    assert len([line for line in proxy.passed if line.startswith(LIST)]) == pages


def test_a_page_of_too_many_bytes_is_a_failure_of_the_service(
    logging_url: str, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_logging, "MAX_PAGE_BYTES", 100_000)
    Written(logging_url).write(job_id, "workerpool0-0", "x" * 100_000)
    with pytest.raises(ServiceFailed, match="more than 100000 bytes"):
        CloudJobLogs(project=PROJECT, endpoint=logging_url).read(LogQuery(job_id=job_id))


def test_a_deployment_that_may_not_read_logs_gets_the_grant_it_needs_named(proxy: Proxy, job_id: str) -> None:
    proxy.faults.append(ProxyFault(on=LIST, status=403, message="Permission denied for all log views"))
    with pytest.raises(AccessDenied, match=r"logging\.logEntries\.list is not granted"):
        CloudJobLogs(project=PROJECT, endpoint=proxy.url).read(LogQuery(job_id=job_id))
    assert proxy.injected


@pytest.mark.parametrize(
    "fault", [ProxyFault(on=LIST, status=503), ProxyFault(on=LIST, status=429), ProxyFault(on=LIST)]
)
def test_a_service_that_does_not_answer_has_failed(fault: ProxyFault, proxy: Proxy, job_id: str) -> None:
    proxy.faults.append(fault)
    with pytest.raises(ServiceFailed, match="Cloud Logging could not read the log of job"):
        CloudJobLogs(project=PROJECT, endpoint=proxy.url).read(LogQuery(job_id=job_id))
    assert proxy.injected == [fault]


def test_a_missing_response_is_waited_for_no_longer_than_allowed(
    proxy: Proxy, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_logging, "READ_WITHIN_S", 0.5)
    proxy.stall_at(LIST, nth=1)
    try:
        with pytest.raises(ServiceFailed):
            CloudJobLogs(project=PROJECT, endpoint=proxy.url).read(LogQuery(job_id=job_id))
    finally:
        proxy.let_go()
