"""What each call on tuning jobs does, and where they are kept."""

import asyncio
import secrets
import shutil
from datetime import UTC, datetime
from pathlib import Path

from trainmaster.local.jobs.listing.catalogue import Catalogue
from trainmaster.local.jobs.listing.paging import page_of
from trainmaster.local.jobs.resource.errors import ApiError, Status
from trainmaster.local.jobs.resource.job import InvalidJobError
from trainmaster.local.jobs.resource.operations import brief, delete_operation_of
from trainmaster.local.jobs.runs.log import JobLog, WriteLog
from trainmaster.local.jobs.service import JobService, Parent
from trainmaster.local.jobs.store import Store
from trainmaster.local.tuning.ledger import TuningJob, parse_tuning_job
from trainmaster.local.tuning.run import TuningRun
from trainmaster.local.tuning.store import TuningStore
from trainmaster.local.tuning.trial import Trial


class TuningService:
    """Tuning jobs: created, read, listed, cancelled, deleted. All calls are made from one event loop."""

    def __init__(
        self, *, jobs: JobService, store: Store, directory: Path, write_log: WriteLog, seed: int | None
    ) -> None:
        """`directory` holds `tuning.sqlite` and the trials' metric files; `seed` makes searches repeatable."""
        self._jobs, self._store, self._write_log, self._seed = jobs, store, write_log, seed
        self._metrics = directory / "metrics"
        self._kept = TuningStore(directory / "tuning.sqlite")
        self._known = Catalogue(self._kept.jobs())
        self._runs: dict[str, TuningRun] = {}

    def resume(self) -> None:
        """Take up what the last stack left unfinished or unannounced. After the JobService's own `resume`."""
        for job in list(self._known):
            if not job.announced:
                self._run(job)

    async def stop(self) -> None:
        """Leave unfinished jobs as they stand. Before the JobService's own `stop`."""
        for run in list(self._runs.values()):
            await run.abandon()
        self._kept.close()

    async def create(self, parent: Parent, body: object) -> TuningJob:
        """Accept a tuning job and start its first trials.

        Raises:
            ApiError: INVALID_ARGUMENT with every fault; RESOURCE_EXHAUSTED when no trial could ever run here,
                or the region's quota or rate of requests leaves no room for it.
        """
        self._jobs.supply.count_request(parent.location, parent.project)
        job_id = str(10**18 + secrets.randbelow(8 * 10**18))
        try:
            job = parse_tuning_job(
                body, project=parent.project, location=parent.location, job_id=job_id, at=datetime.now(UTC)
            )
        except InvalidJobError as error:
            raise ApiError(Status.INVALID_ARGUMENT, str(error)) from error
        self._jobs.refuse_what_never_fits(job)
        self._jobs.refuse_over_quota(job, job.message.trial_job_spec, copies=job.message.parallel_trial_count)
        self._save(job, None)
        self._run(job)
        request: dict[str, object] = {"parent": parent.name, "hyperparameterTuningJob": brief(job)}
        await self._jobs.audit("CreateHyperparameterTuningJob", job.name, request, {"name": job.name})
        return job

    def get(self, parent: Parent, job_id: str) -> TuningJob:
        """The job as it stands, trials included.

        Raises:
            ApiError: NOT_FOUND.
        """
        job = self._known.get(job_id)
        if job is None or job.parent != parent.name:
            name = f"{parent.name}/{TuningJob.collection}/{job_id}"
            raise ApiError(Status.NOT_FOUND, f"The HyperparameterTuningJob {name} does not exist.")
        return job

    def list(
        self, parent: Parent, *, filter_: str, page_size: int, page_token: str
    ) -> tuple[list[TuningJob], str]:
        """One page of jobs, newest first, and the token of the next page.

        Raises:
            ApiError: INVALID_ARGUMENT.
        """
        return page_of(self._known, parent.name, filter_=filter_, page_size=page_size, page_token=page_token)

    async def cancel(self, parent: Parent, job_id: str) -> None:
        """Begin to end a job and every replica of its trials.

        Raises:
            ApiError: NOT_FOUND; FAILED_PRECONDITION when it has ended already.
        """
        job = self.get(parent, job_id)
        if job.state.is_terminal:
            what = f"The HyperparameterTuningJob {job.name} is in state {job.state.api_name} and cannot be cancelled."
            raise ApiError(Status.FAILED_PRECONDITION, what)
        self._runs[job_id].cancel()
        await self._jobs.audit("CancelHyperparameterTuningJob", job.name, {"name": job.name}, {})

    async def delete(self, parent: Parent, job_id: str) -> dict[str, object]:
        """Forget a job that has ended, with its trials' jobs; the finished operation.

        Raises:
            ApiError: NOT_FOUND; FAILED_PRECONDITION while it has not ended.
        """
        job = self.get(parent, job_id)
        if not job.state.is_terminal:
            what = f"The HyperparameterTuningJob {job.name} is in state {job.state.api_name}; only a job that has ended can be deleted."
            raise ApiError(Status.FAILED_PRECONDITION, what)
        if run := self._runs.get(job_id):  # its last line is still being written
            await run.wait()
        self._known.pop(job_id)
        self._kept.delete(job_id)
        for trial in job.trials.values():
            await self._jobs.forget_trial(trial.job_id)
        await asyncio.to_thread(shutil.rmtree, self._metrics / job_id, ignore_errors=True)
        operation = delete_operation_of(job)
        self._store.put_operation(str(operation["name"]), job.parent, operation)
        response: dict[str, object] = {"name": operation["name"]}
        await self._jobs.audit("DeleteHyperparameterTuningJob", job.name, {"name": job.name}, response)
        return operation

    def _run(self, job: TuningJob) -> None:
        run = TuningRun(
            job,
            jobs=self._jobs,
            save=self._save,
            log=JobLog(self._write_log, project_id=self._jobs.project_id_of(job), job_id=job.job_id),
            metrics=self._metrics,
            seed=self._seed,
        )
        self._runs[job.job_id] = run
        run.start(on_end=lambda: self._runs.pop(job.job_id, None))

    def _save(self, job: TuningJob, trial: Trial | None) -> None:
        if trial is None:
            self._kept.put(job)
        else:
            self._kept.put_trial(job, trial)
        self._known.put(job)
