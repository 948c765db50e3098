"""Records what the machines of an ended job did. Cloud Monitoring shows samples minutes late, and nothing waits for it.

The reconciler reads again until the last samples are there, and for at most LATE_AFTER after the job's end. Then what is
there counts, and if nothing is, the record says nothing.
"""

from datetime import timedelta

from trainmaster.orchestrator.core.admission.candidates import current_candidate, pools_of
from trainmaster.orchestrator.core.completion.machine_metrics import (
    SAMPLED_EVERY,
    MachineMetric,
    job_queries,
    last_point_at,
    utilization_of,
)
from trainmaster.orchestrator.core.errors import AccessDenied, ServiceFailed
from trainmaster.orchestrator.core.job_names import JobKind, job_id, job_kind
from trainmaster.orchestrator.flows.lifecycle.finish import End

LATE_AFTER = timedelta(minutes=10)
LAST_SAMPLE = 2 * SAMPLED_EVERY
"""How long before a job's end its last sample may be."""


def read_utilization(end: End) -> str | None:
    """Find what the run's last job used; a text while it may still come; None also if it does not, or there is no job.

    Of a tuning nothing is read: the service does not document under which job its trials report. One failure ends the
    reads of this delivery, so that a slow service takes no time from other runs.
    """
    services, record, job = end.services, end.record, end.record.job
    if job is None or job_kind(job.name) is not JobKind.CUSTOM or not (job.start_time and job.end_time):
        return None
    is_late = services.clock.now() - job.end_time >= LATE_AFTER
    has_gpus = record.request is not None and any(
        pool.accelerator for _, pool in pools_of(current_candidate(record).spec.cluster)
    )
    found = {}
    try:
        if services.metrics_failed:
            raise services.metrics_failed
        until = job.end_time + SAMPLED_EVERY
        for query in job_queries(job_id(job.name), job.start_time, until, has_gpus=has_gpus):
            found[query.metric] = services.machine_metrics.list_time_series(query)
            last = last_point_at(found[MachineMetric.CPU])
            if not is_late and (last is None or last < job.end_time - LAST_SAMPLE):
                return "Cloud Monitoring does not show the job's last samples yet"
    except AccessDenied:
        return None
    except ServiceFailed as failed:
        services.metrics_failed = failed
        return None if is_late else str(failed)
    end.utilization = utilization_of(found)
    return None
