"""Training jobs on Vertex AI, through the generated JobServiceClient over REST.

`google.cloud.aiplatform`, the high-level package, is never imported: it takes twice the time and memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from trainmaster.orchestrator.adapters.job_messages import (
    experiment_contexts,
    job_from,
    message_of,
    pool_state_from,
)
from trainmaster.orchestrator.adapters.refusals import (
    SERVICE,
    Called,
    api_errors,
    deployment_refused,
    failures_of,
    is_transport_error,
    submission_error,
)
from trainmaster.orchestrator.adapters.total_limit import Deadline, within
from trainmaster.orchestrator.adapters.vertex_clients import TIMEOUT_S, RegionalClients, session_of
from trainmaster.orchestrator.core.completion.experiment import ExperimentRun
from trainmaster.orchestrator.core.errors import (
    JobNotFound,
    ServiceFailed,
    SubmissionRefused,
    SubmissionUnknown,
)
from trainmaster.orchestrator.core.job_names import (
    JobKind,
    context_name,
    job_kind,
    job_region,
    location_name,
    location_region,
)
from trainmaster.orchestrator.core.names import DEPLOYMENT_LABEL, RUN_LABEL
from trainmaster.orchestrator.core.policy.pools import PoolState
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.states import END_OF, OVER
from trainmaster.partial_import import IMPORTING, VERTEX_CLIENT, import_parts_of

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
    from google.cloud.aiplatform_v1.services.metadata_service import MetadataServiceClient
    from google.cloud.aiplatform_v1.services.persistent_resource_service import (
        PersistentResourceServiceClient,
    )

JOBS_OF_RUN_MAX = 2000
"""A run waits for capacity at most 1,000 times, and each of its jobs is replaced only after a search for it."""

PAGE_SIZE = 100
"""As gcloud asks for. The largest page that the service gives is not documented."""
ACTIVE_LISTED_MAX = 5000
"""Of one kind in one region: 50 pages."""
LISTED_FIELDS = ("name", "state", "labels", "create_time", "start_time")
ACTIVE = " AND ".join((*(f'state!="{state}"' for state in END_OF), f"labels.{RUN_LABEL}:*"))
"""The filter for the jobs of runs that have not ended. A state that this version does not know counts as active.

Source: ListCustomJobsRequest in google/cloud/aiplatform/v1/job_service.proto, whose examples have `!=`, AND and
`labels.keyB:*`, and no parentheses.
"""


class VertexJobs(RegionalClients):
    """The jobs of one deployment. `endpoint` is None for Google Cloud, else an emulator's URL, for every region.

    The library is imported by the first call; each region has a client.
    """

    def __init__(
        self,
        *,
        project: str,
        endpoint: str | None,
        deployment: str = "",
    ) -> None:
        super().__init__(endpoint)
        self._project = project
        self._deployment = deployment

    def _client(self, region: str) -> "JobServiceClient":
        with IMPORTING:
            import_parts_of(*VERTEX_CLIENT)
            from google.cloud.aiplatform_v1.services.job_service import JobServiceClient

        return self._kept_client(JobServiceClient, region)

    def _pool_client(self, region: str) -> "PersistentResourceServiceClient":
        with IMPORTING:
            import_parts_of(*VERTEX_CLIENT)
            from google.cloud.aiplatform_v1.services import persistent_resource_service as service

        return self._kept_client(service.PersistentResourceServiceClient, region)

    def _metadata_client(self, region: str) -> "MetadataServiceClient":
        with IMPORTING:
            import_parts_of(*VERTEX_CLIENT)
            from google.cloud.aiplatform_v1.services import metadata_service as service

        return self._kept_client(service.MetadataServiceClient, region)

    def prepare(self, region: str) -> None:
        """Import the library and get credentials, without connecting, so that no lease has to wait for it.

        Raises:
            ServiceFailed: there are no credentials now.
        """
        with failures_of(SERVICE, "get credentials"):
            session = session_of(self._client(region))
            if not session.credentials.valid:
                with IMPORTING:
                    from google.auth.transport.requests import Request

                session.credentials.refresh(Request())

    def submit(self, submission: Submission) -> Job:
        # No retry: the service has no request id, so a repeated call could create a second job.
        once: dict[str, Any] = {"parent": submission.parent, "timeout": TIMEOUT_S, "retry": None}
        try:
            message = message_of(submission)
        except Exception as error:  # protobuf raises other errors than ValueError too; nothing was sent
            raise SubmissionRefused(0, f"it cannot be written as the service's message: {error}") from error
        try:
            methods = _methods(self._client(location_region(submission.parent)), submission.kind)
            create = partial(methods.create, **{methods.resource: message}, **once)
            created = within(Deadline.after(TIMEOUT_S), create)
        except Exception as error:  # translated or raised again, never swallowed
            region = location_region(submission.parent)
            called = self._collection(region, submission.kind)
            raise _submission_error(error, called) from error
        return job_from(created)

    def _collection(self, region: str, kind: JobKind) -> Called:
        return Called(project=self._project, region=region, kind=kind, deployment=self._deployment)

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        what, label = f"list the jobs of {run_id}", f"labels.{RUN_LABEL}={run_id}"
        labelled = (job for region in regions for job in self._list(kind, region, what, filter=label))
        found = list(islice(labelled, JOBS_OF_RUN_MAX + 1))
        if len(found) > JOBS_OF_RUN_MAX:
            # The run's own job may be one of the others: without it, a second one would be submitted.
            raise ServiceFailed(
                SERVICE,
                what,
                f"more than {JOBS_OF_RUN_MAX:,} jobs have the label {RUN_LABEL}={run_id}, more than a run can have; "
                "delete the jobs of other programs with this label",
            )
        return sorted(found, key=lambda job: (job.create_time is None, job.create_time, job.name))

    def active(self, kind: JobKind, region: str) -> Sequence[Job]:
        fields = {"read_mask": {"paths": LISTED_FIELDS}, "page_size": PAGE_SIZE, "filter": ACTIVE}
        return list(islice(self._list(kind, region, f"list the active {kind}", **fields), ACTIVE_LISTED_MAX))

    # Any: the fields of both kinds' requests.
    def _list(self, kind: JobKind, region: str, what: str, **fields: Any) -> Iterator[Job]:
        request = {"parent": location_name(self._project, region), **fields}
        with failures_of(SERVICE, f"{what} in {region}"):
            try:
                listed = _methods(self._client(region), kind).list(request=request, timeout=TIMEOUT_S)
                jobs = map(job_from, listed)
                # Another deployment in the project may have a run of the same id, by the same idempotency key.
                yield from (job for job in jobs if job.labels.get(DEPLOYMENT_LABEL, "") == self._deployment)
            except api_errors().GoogleAPICallError as error:
                refused = deployment_refused(error, self._collection(region, kind))
                if refused is None:
                    raise
                raise refused from error

    def read(self, name: str) -> Job:
        with failures_of(SERVICE, f"read {name}"):
            get = _methods(self._client(job_region(name)), job_kind(name)).get
            try:
                return job_from(get(name=name, timeout=TIMEOUT_S))
            except api_errors().NotFound as error:
                raise JobNotFound(name) from error

    def cancel(self, name: str) -> None:
        with failures_of(SERVICE, f"cancel {name}"), suppress(api_errors().NotFound):
            cancel = _methods(self._client(job_region(name)), job_kind(name)).cancel
            try:
                cancel(name=name, timeout=TIMEOUT_S)
            except api_errors().BadRequest:
                # The service's answer for a job that has ended is not documented: its state shows whether it has.
                if self.read(name).state not in OVER:
                    raise

    def pool_states(self, region: str) -> Sequence[PoolState]:
        client, parent = self._pool_client(region), location_name(self._project, region)
        with failures_of(SERVICE, f"list the persistent resources of {region}"):
            found = client.list_persistent_resources(parent=parent, timeout=TIMEOUT_S)
            return [pool_state_from(resource) for resource in found]

    def delete_pool(self, name: str) -> None:
        with failures_of(SERVICE, f"delete {name}"), suppress(api_errors().NotFound):
            client = self._pool_client(name.split("/")[3])
            client.delete_persistent_resource(name=name, timeout=TIMEOUT_S)

    def keep_experiment_run(self, run: ExperimentRun) -> None:
        client, location = self._metadata_client(run.region), location_name(self._project, run.region)
        store = {"parent": f"{location}/metadataStores/default"}
        experiment, own = experiment_contexts(run)
        with failures_of(SERVICE, f"log {run.run_id} to the experiment {run.experiment}"):
            for context_id, context in ((run.experiment, experiment), (run.id, own)):
                request = {**store, "context": context, "context_id": context_id}
                try:
                    client.create_context(request=request, timeout=TIMEOUT_S)
                except api_errors().Conflict:
                    continue  # by an earlier attempt, or an earlier run of the experiment
                except api_errors().NotFound as error:
                    creation = {"parent": location, "metadata_store": {}, "metadata_store_id": "default"}
                    with suppress(api_errors().Conflict):
                        client.create_metadata_store(request=creation, timeout=TIMEOUT_S)
                    reason = "the project's metadata store is being created"
                    raise ServiceFailed(SERVICE, f"log to the experiment {run.experiment}", reason) from error
            parent, child = (
                context_name(self._project, run.region, name) for name in (run.experiment, run.id)
            )
            client.add_context_children(
                request={"context": parent, "child_contexts": [child]}, timeout=TIMEOUT_S
            )


# Any: proto-plus messages and pagers are untyped.
@dataclass(frozen=True, kw_only=True)
class _Methods:
    """The client's methods for one kind of job; `resource` is the keyword under which `create` takes one."""

    resource: str
    create: Callable[..., Any]
    get: Callable[..., Any]
    list: Callable[..., Iterable[Any]]
    cancel: Callable[..., Any]


def _methods(client: "JobServiceClient", kind: JobKind) -> _Methods:
    match kind:
        case JobKind.CUSTOM:
            return _Methods(
                resource="custom_job",
                create=client.create_custom_job,
                get=client.get_custom_job,
                list=client.list_custom_jobs,
                cancel=client.cancel_custom_job,
            )
        case JobKind.TUNING:
            return _Methods(
                resource="hyperparameter_tuning_job",
                create=client.create_hyperparameter_tuning_job,
                get=client.get_hyperparameter_tuning_job,
                list=client.list_hyperparameter_tuning_jobs,
                cancel=client.cancel_hyperparameter_tuning_job,
            )


def _submission_error(error: Exception, called: Called) -> Exception:
    """What the client's error means for a submission; the error itself if it is a bug in this program."""
    with IMPORTING:
        from google.auth.exceptions import GoogleAuthError

    if isinstance(error, api_errors().GoogleAPICallError):
        return submission_error(error, called)
    if isinstance(error, GoogleAuthError):
        return ServiceFailed(SERVICE, "submit the job", f"{type(error).__name__}: {error}")
    if is_transport_error(error):
        return SubmissionUnknown(f"{type(error).__name__}: {error}")
    return error
