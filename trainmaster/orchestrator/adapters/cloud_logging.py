"""The log of a training job, through google-cloud-logging over REST; imported when a job has failed, or a policy asks for silent ones."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from functools import cached_property, partial
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from trainmaster.orchestrator.adapters.refusals import failures_of
from trainmaster.orchestrator.adapters.total_limit import Deadline, LimitPassed, within
from trainmaster.orchestrator.core.completion.explanation import SERVICE as SERVICE_TASK
from trainmaster.orchestrator.core.completion.explanation import LogEntry, LogQuery
from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.errors import AccessDenied
from trainmaster.partial_import import IMPORTING

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from google.cloud.logging import Client

SERVICE = "Cloud Logging"
PERMISSION = "logging.logEntries.list"
SCOPES = ("https://www.googleapis.com/auth/logging.read",)
READ_WITHIN_S = 8.0
"""The limit for one read with all its pages."""
MAX_PAGES, PAGE_ENTRIES = 4, 500
"""A page may have fewer entries than requested, or none: the service searches part of the log at a time.

Source: https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/list, nextPageToken
"""
MAX_ENTRIES = 1000
MAX_PAGE_BYTES = 16 * 2**20
_Answer = TypeVar("_Answer")


class CloudJobLogs:
    """The logs of one project's jobs. `endpoint` is None for Google Cloud, else an emulator's URL."""

    def __init__(self, *, project: str, endpoint: str | None) -> None:
        self._project = project
        self._endpoint = endpoint

    @cached_property
    def _credentials(self) -> "Credentials":
        with IMPORTING:
            import google.auth
            from google.auth.credentials import AnonymousCredentials

        own: Credentials = AnonymousCredentials() if self._endpoint else google.auth.default(scopes=SCOPES)[0]
        return own

    def read(self, query: LogQuery) -> Sequence[LogEntry]:
        return self._within_limit(f"read the log of job {query.job_id}", partial(self._read, query))

    def silent_jobs(self, job_ids: Sequence[str], since: datetime) -> Sequence[str]:
        return self._within_limit("look for jobs that log nothing", partial(self._silent, job_ids, since))

    def _within_limit(self, operation: str, read: Callable[[Deadline], _Answer]) -> _Answer:
        with IMPORTING:
            from google.api_core.exceptions import Forbidden

        deadline = Deadline.after(READ_WITHIN_S)
        with failures_of(SERVICE, operation):
            try:
                return within(deadline, partial(read, deadline))
            except Forbidden as error:
                raise AccessDenied(SERVICE, operation, PERMISSION) from error

    def _silent(self, job_ids: Sequence[str], since: datetime, deadline: Deadline) -> Sequence[str]:
        """Each read leaves out the jobs that earlier ones have seen, so that those that log much do not fill it."""
        left = list(job_ids)
        with self._client(deadline) as client, suppress(_EnoughRead):
            while left:
                jobs = " OR ".join(f"resource.labels.job_id={_in_quotes(job_id)}" for job_id in left)
                wanted = (
                    f'resource.type="ml_job" AND ({jobs}) AND timestamp>={_in_quotes(encoded_time(since))}'
                )
                entries = list(
                    islice(client.list_entries(filter_=wanted, page_size=PAGE_ENTRIES), PAGE_ENTRIES)
                )
                seen = {(entry.resource.labels or {}).get("job_id") for entry in entries}
                left = [one for one in left if one not in seen]
                if len(entries) < PAGE_ENTRIES:
                    return left
        return []

    def _read(self, query: LogQuery, deadline: Deadline) -> Sequence[LogEntry]:
        with IMPORTING:
            from google.cloud.logging import DESCENDING

        found: list[LogEntry] = []
        with self._client(deadline) as client, suppress(_EnoughRead):
            wanted = filter_of(query)
            listed = client.list_entries(filter_=wanted, order_by=DESCENDING, page_size=PAGE_ENTRIES)
            for entry in islice(listed, MAX_ENTRIES):
                found.append(_entry(entry))  # noqa: PERF401  # what came before the last page counts
        return found

    @contextmanager
    def _client(self, deadline: Deadline) -> "Iterator[Client]":
        """A client of one read, whose bounds `_bounded_adapter` keeps."""
        with IMPORTING:
            from google.auth.transport.requests import AuthorizedSession
            from google.cloud.logging import Client

        with closing(AuthorizedSession(self._credentials)) as session:
            session.mount("http://", _bounded_adapter(deadline))
            session.mount("https://", _bounded_adapter(deadline))
            yield Client(
                project=self._project,
                credentials=self._credentials,
                client_options={"api_endpoint": self._endpoint} if self._endpoint else None,
                _http=session,
                _use_grpc=False,  # an emulator without TLS works over REST, not over a gRPC channel
            )


class _EnoughRead(Exception):
    """The maximum number of pages was read: what they held counts."""


def _bounded_adapter(deadline: Deadline) -> Any:  # Any: a class made of the library's own at run time
    """An adapter of `requests` for one read: it limits the number of responses, their size, and the total time."""
    with IMPORTING:
        from requests.adapters import HTTPAdapter

    class Bounded(HTTPAdapter):
        pages = 0

        def send(self, request: Any, **options: Any) -> Any:  # type: ignore[override]  # see above
            self.pages += 1
            if self.pages > MAX_PAGES:
                raise _EnoughRead
            options.update(stream=True, timeout=deadline.left_s)
            response = super().send(request, **options)
            body = response.raw.read(MAX_PAGE_BYTES + 1, decode_content=True)
            if len(body) > MAX_PAGE_BYTES:
                response.close()
                raise LimitPassed(f"a page of more than {MAX_PAGE_BYTES} bytes")
            response.raw = BytesIO(body)
            return response

    return Bounded()


def filter_of(query: LogQuery) -> str:
    """The query in the language of Cloud Logging, in which OR binds more tightly than AND.

    Source: https://cloud.google.com/logging/docs/view/logging-query-language
    """
    terms = ['resource.type="ml_job"', f"resource.labels.job_id={_in_quotes(query.job_id)}"]
    if query.since is not None:
        terms.append(f"timestamp>={_in_quotes(encoded_time(query.since))}")
    if query.trial_id is not None:
        terms.append(f'labels."ml.googleapis.com/trial_id"={_in_quotes(query.trial_id)}')
    if query.replica is not None:
        terms += [f"resource.labels.task_name={_in_quotes(query.replica)}", "severity>=ERROR"]
    else:
        terms.append(f"(severity>=ERROR OR resource.labels.task_name={_in_quotes(SERVICE_TASK)})")
    return " AND ".join(terms)


def _in_quotes(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _entry(entry: Any) -> LogEntry:  # Any: the client's entry classes share no typed base
    payload = entry.payload
    text = payload.get("message", payload) if isinstance(payload, dict) else payload
    return LogEntry(
        task=str((entry.resource.labels or {}).get("task_name", "")),
        at=entry.timestamp,
        insert_id=str(entry.insert_id),
        text=str(text or ""),
    )
