"""What the machines of training jobs do, from Cloud Monitoring over REST; imported when a job has ended or a policy asks."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from trainmaster.orchestrator.adapters.refusals import failures_of
from trainmaster.orchestrator.adapters.total_limit import Deadline, LimitPassed, within
from trainmaster.orchestrator.core.completion.machine_metrics import (
    ENDPOINT,
    MAX_PAGE_BYTES,
    PERMISSION,
    SCOPE,
    MetricQuery,
    MetricSeries,
    list_series,
)
from trainmaster.orchestrator.core.errors import AccessDenied
from trainmaster.partial_import import IMPORTING

if TYPE_CHECKING:
    from google.auth.transport.requests import AuthorizedSession

SERVICE = "Cloud Monitoring"
READ_WITHIN_S = 5.0
"""The limit for one query with all its pages."""
_FORBIDDEN, _NOT_FOUND = 403, 404


class CloudMachineMetrics:
    """The metrics of one project's jobs. `endpoint` is None for Google Cloud, else an emulator's URL."""

    def __init__(self, *, project: str, endpoint: str | None) -> None:
        self._url = f"{endpoint or ENDPOINT}/v3/projects/{project}/timeSeries"
        self._is_local = endpoint is not None

    def list_time_series(self, query: MetricQuery) -> Sequence[MetricSeries]:
        deadline = Deadline.after(READ_WITHIN_S)
        with failures_of(SERVICE, f"list {query.metric}"):
            return within(deadline, partial(self._list, query, deadline))

    def _list(self, query: MetricQuery, deadline: Deadline) -> Sequence[MetricSeries]:
        with IMPORTING:
            import google.auth
            from google.auth.credentials import AnonymousCredentials
            from google.auth.transport.requests import AuthorizedSession

        own = AnonymousCredentials() if self._is_local else google.auth.default(scopes=[SCOPE])[0]
        with closing(AuthorizedSession(own)) as session:
            return list_series(query, partial(self._page, session, deadline, query))

    def _page(
        self,
        session: "AuthorizedSession",
        deadline: Deadline,
        query: MetricQuery,
        parameters: Sequence[tuple[str, str]],
    ) -> Mapping[str, Any]:  # Any: JSON
        answer = session.get(self._url, params=parameters, timeout=deadline.left_s, stream=True)
        with closing(answer):
            if answer.status_code == _FORBIDDEN:
                raise AccessDenied(SERVICE, f"list {query.metric}", PERMISSION)
            if answer.status_code == _NOT_FOUND:  # no job has reported this metric yet, or it was retired
                return {}
            answer.raise_for_status()
            body = answer.raw.read(MAX_PAGE_BYTES + 1, decode_content=True)
        if len(body) > MAX_PAGE_BYTES:
            raise LimitPassed(f"a page of more than {MAX_PAGE_BYTES} bytes")
        found: Mapping[str, Any] = json.loads(body)
        return found
