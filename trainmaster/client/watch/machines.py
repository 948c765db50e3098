"""What the machines of a running job do now, from Cloud Monitoring with the user's rights."""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import service_errors
from trainmaster.client.runs.facts import candidate_of, is_tuning
from trainmaster.orchestrator.core.admission.candidates import pools_of
from trainmaster.orchestrator.core.completion.machine_metrics import (
    ENDPOINT,
    MAX_PAGE_BYTES,
    PERMISSION,
    POINTS_MAX,
    SAMPLED_EVERY,
    MachineMetric,
    MetricSeries,
    job_queries,
    list_series,
)
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.runs.record import RunRecord

WITHIN_S = 5
AGE_S, LOCAL_AGE_S = 60.0, 2.0
"""How old an answer may be while a run is watched: samples come as often."""
_UNREADABLE: tuple[type[Exception], ...] = (ValueError, KeyError, AttributeError)
"""An answer of another form."""
_FORBIDDEN, _NOT_FOUND = 403, 404
ReplicaSeries = Mapping[MachineMetric, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class MachinesNow:
    """The use of each replica so far, by metric: at most POINTS_MAX fractions, oldest first.

    `why`: why it cannot be read; empty if it was.
    """

    replicas: Mapping[str, ReplicaSeries] = field(default_factory=dict)
    why: str = ""


class _Refused(Exception):
    """The user may not read it."""


def read_machines(clients: Clients, record: RunRecord, now: datetime) -> MachinesNow:
    """What the machines of the run's active job do; empty for any other run, or where nothing is reported.

    Costs two or four queries of Cloud Monitoring.
    """
    job, candidate, context = record.job, candidate_of(record), clients.context
    is_older_stack = context.monitoring_host is None and context.logging_host is not None
    if job is None or record.ended or candidate is None or is_tuning(record) or is_older_stack:
        return MachinesNow()
    since = job.start_time or job.create_time or record.history[0].at
    has_gpus = any(pool.accelerator for _, pool in pools_of(candidate.spec.cluster))
    queries = job_queries(job_id(job.name), since, now + SAMPLED_EVERY, has_gpus=has_gpus)
    found: dict[str, dict[MachineMetric, Sequence[float]]] = {}
    try:
        for query in queries:
            if not query.metric.is_count:
                for replica, values in _by_replica(list_series(query, lambda asked: _page(clients, asked))):
                    found.setdefault(replica, {})[query.metric] = values
    except _Refused:
        return MachinesNow(why=f"you lack {PERMISSION}, for example by roles/monitoring.viewer")
    except (*service_errors(), *_UNREADABLE) as error:
        return MachinesNow(why=f"Cloud Monitoring does not answer: {type(error).__name__}")
    return MachinesNow(replicas=found)


def _page(clients: Clients, asked: Sequence[tuple[str, str]]) -> Mapping[str, Any]:  # Any: JSON
    context = clients.context
    url = f"{context.monitoring_host or ENDPOINT}/v3/projects/{context.project}/timeSeries"
    with closing(clients.http.get(url, params=asked, timeout=WITHIN_S, stream=True)) as answer:
        if answer.status_code == _FORBIDDEN:
            raise _Refused
        if answer.status_code == _NOT_FOUND:  # no job of the project has reported this metric
            return {}
        answer.raise_for_status()
        body = bytearray()
        for piece in answer.iter_content(1 << 16):
            body += piece
            if len(body) > MAX_PAGE_BYTES:
                raise ValueError(f"a page of more than {MAX_PAGE_BYTES} bytes")
    found: Mapping[str, Any] = json.loads(body)
    return found


def _by_replica(series: Sequence[MetricSeries]) -> Sequence[tuple[str, Sequence[float]]]:
    """The mean of a replica's GPUs at each time, in at most POINTS_MAX points."""
    values: dict[str, dict[datetime, list[float]]] = {}
    for one in series:
        for at, value in one.points:
            values.setdefault(one.replica, {}).setdefault(at, []).append(value)
    return [(name, thinned_means([fmean(at[time]) for time in sorted(at)])) for name, at in values.items()]


def thinned_means(values: Sequence[float], most: int = POINTS_MAX) -> Sequence[float]:
    """The values, or if there are more than `most`, means of equally many of them."""
    size = -(-len(values) // most) or 1
    return [fmean(values[first : first + size]) for first in range(0, len(values), size)]


class MachinesWatch:
    """Reads again as often as samples come, and no more once a read has failed."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._age_s = AGE_S if clients.context.state is None else LOCAL_AGE_S
        self._last, self._read_at = MachinesNow(), -AGE_S

    def look(self, record: RunRecord, now: datetime) -> MachinesNow:
        """What the machines do now; of a run that has ended, what they did last."""
        if not record.ended and not self._last.why and time.monotonic() - self._read_at >= self._age_s:
            self._last, self._read_at = read_machines(self._clients, record, now), time.monotonic()
        return self._last
