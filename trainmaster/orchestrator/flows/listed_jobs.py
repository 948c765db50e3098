"""The jobs of one reconcile pass: one list for each region and kind, and single reads of what it lacks."""

from collections import defaultdict
from collections.abc import Mapping

from trainmaster.orchestrator.core.job_names import JobKind, job_id, job_kind, job_region
from trainmaster.orchestrator.core.names import RUN_LABEL, STEP_LABEL
from trainmaster.orchestrator.core.runs.job import Job, RecordedJob
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.services import Services

TUNINGS_READ, RUNS_FOR_A_READ = 4, 200
"""How many tunings of a region a pass reads whole: one less for each further 200 active runs, but at least one.

Lists have no trials, so each look at a tuning's trials costs a read. The tunings that run take turns; those that wait
to start are always read, because a trial may have started.
Source: ListHyperparameterTuningJobsResponse in google/cloud/aiplatform/v1/job_service.proto
"""


class ListedJobs:
    """A region is listed when the first of its jobs is asked for. `runs`: how many are active."""

    def __init__(self, services: Services, runs: int) -> None:
        self._services = services
        self._tunings_read = max(1, TUNINGS_READ - runs // RUNS_FOR_A_READ)
        self._of_run: dict[tuple[JobKind, str], set[str]] = defaultdict(set)
        self._lists: dict[tuple[JobKind, str], Mapping[str, Job] | Exception] = {}

    def find(self, recorded: RecordedJob) -> Job:
        """The job as it was listed; read now if it was not listed, or has started since it was recorded.

        Raises:
            JobNotFound: no job has that name.
            ServiceFailed: the jobs of its region cannot be listed now. They are not read one by one: that would use up
                the quota, which submissions and cancellations need too.
        """
        place = job_kind(recorded.name), job_region(recorded.name)
        if place not in self._lists:
            self._lists[place] = self._list(*place)
        listed = self._lists[place]
        if isinstance(listed, Exception):
            raise listed
        job = listed.get(job_id(recorded.name))
        if job is not None and job.start_time == recorded.start_time:
            return job
        return self._services.jobs.read(recorded.name)

    def has_second(self, record: RunRecord) -> bool:
        """Whether the jobs that were listed for the run's own have another one of the run that is not known yet."""
        if record.job is None:
            return False
        known = map(job_id, (record.job.name, *record.submission.second_jobs))
        # A study's trials run as custom jobs with its labels.
        return bool(self._of_run[job_kind(record.job.name), record.run_id].difference(known))

    def _list(self, kind: JobKind, region: str) -> Mapping[str, Job] | Exception:
        """The active jobs by id, without the tunings that are due to be read; or why they cannot be listed."""
        try:
            jobs = sorted(self._services.jobs.active(kind, region), key=lambda job: job.name)
        except Exception as error:  # raised for each run of the region
            return error
        for job in jobs:
            if STEP_LABEL not in job.labels:
                self._of_run[kind, job.labels.get(RUN_LABEL, "")].add(job_id(job.name))
        if kind is JobKind.TUNING:
            passes = -(-len(jobs) // self._tunings_read)  # until each had its turn
            turn = int(self._services.clock.now().timestamp()) // 60
            jobs = [job for number, job in enumerate(jobs) if job.start_time and (number - turn) % passes]
        return {job_id(job.name): job for job in jobs}
