"""Official clients of the services of one context."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from trainmaster.client.context import Context
from trainmaster.orchestrator.core.job_names import JobKind, job_kind, job_region
from trainmaster.orchestrator.core.names import IDEMPOTENCY_KEY
from trainmaster.partial_import import VERTEX_CLIENT, import_parts_of

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from google.auth.transport.requests import AuthorizedSession
    from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
    from google.cloud.logging import Client as LoggingClient
    from google.cloud.storage import Client as StorageClient
    from google.pubsub_v1 import PublisherClient, SubscriberClient

PUBLISH_WITHIN_S = 30.0
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_QUOTA_VARIABLE = "GOOGLE_CLOUD_QUOTA_PROJECT"
"""Names the quota project of all credentials, instead of the file that holds them. google.auth reads it."""


class Clients:
    """The clients of one context, each made when it is first used, and all closed at the end of a `with` block."""

    def __init__(self, context: Context, *, note: Callable[[str], object] | None = None) -> None:
        """`note` gets what users should know beside a result. None for a service, where a user's files are not."""
        self.context = context
        self.note = note
        self.person: str | None = None  # who sends, in a team's console: not the owner of the credentials
        self.storage_calls = 0
        """Requests to Cloud Storage so far: each is billed as one operation."""
        self._open = ExitStack()
        self._regional: dict[tuple[str, str], Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def storage(self) -> "StorageClient":
        client = storage_client(self.context)
        # For traces, which nothing here collects, the library would read each bucket: another billed operation.
        client._bucket_metadata_cache = None  # noqa: SLF001 - otherwise only an environment variable prevents it
        client._http.hooks["response"].append(self._count)  # noqa: SLF001 - the client has no counter
        self._open.callback(client.close)
        return client

    def _count(self, *_: object, **__: object) -> None:
        self.storage_calls += 1

    @cached_property
    def logs(self) -> "LoggingClient":
        client = log_reader(project=self.context.project, logging_host=self.context.logging_host)
        self._open.callback(client.close)
        return client

    @cached_property
    def http(self) -> "AuthorizedSession":
        """For services that are called over REST without a client library, such as Cloud Monitoring."""
        from google.auth.credentials import AnonymousCredentials
        from google.auth.transport.requests import AuthorizedSession

        is_local = self.context.monitoring_host is not None
        session = AuthorizedSession(
            AnonymousCredentials() if is_local else default_credentials(self.context.project)
        )
        self._open.callback(session.close)
        return session

    @cached_property
    def jobs(self) -> "JobServiceClient":
        """For jobs in the context's region; `jobs_of_region` has those of other regions."""
        return self.jobs_of_region(self.context.region)

    def jobs_of_region(self, region: str) -> "JobServiceClient":
        client: JobServiceClient = self.vertex("job_service", region)
        return client

    def vertex(self, service: str, region: str = "") -> Any:  # Any: one of several official clients
        """The client of one of Vertex AI's services, such as `endpoint_service`, in a region or the context's.

        Users whose credentials name no quota project use the context's.
        """
        region = region or self.context.region
        if (service, region) not in self._regional:
            import_parts_of(*VERTEX_CLIENT)
            module = import_module(f"google.cloud.aiplatform_v1.services.{service}")
            project, options = self.context.project, _local(self.context.vertex_host)
            if not options:
                host = f"{region}-aiplatform.googleapis.com"
                credentials = default_credentials(project)
                options = {"credentials": credentials, "client_options": {"api_endpoint": host}}
            made = getattr(module, f"{service.title().replace('_', '')}Client")(transport="rest", **options)
            self._regional[service, region] = made
            self._open.callback(made.transport.close)
        return self._regional[service, region]

    def read_job(self, name: str) -> Any:  # Any: proto-plus messages are untyped
        """The custom or tuning job of this resource name.

        Raises:
            google.api_core.exceptions.GoogleAPICallError: it does not exist, or cannot be read.
        """
        jobs, is_tuning = self.jobs_of_region(job_region(name)), job_kind(name) is JobKind.TUNING
        return (jobs.get_hyperparameter_tuning_job if is_tuning else jobs.get_custom_job)(name=name)

    @cached_property
    def pubsub(self) -> "tuple[SubscriberClient, PublisherClient]":
        return self._open.enter_context(pubsub_clients(self.context.pubsub_host))

    @property
    def requests_topic(self) -> str:
        """The resource name of the topic that takes requests and orders: trainmaster/deploy/topology.yaml."""
        return f"projects/{self.context.project}/topics/trainmaster-{self.context.prefix}requests"

    def publish_request(self, content: bytes, key: str, sender: Mapping[str, str]) -> None:
        """Publish a request or an order with this idempotency key and the sender's metadata.

        Raises:
            google.api_core.exceptions.GoogleAPICallError: the topic did not take it within PUBLISH_WITHIN_S seconds.
        """
        from google.pubsub_v1.types import PubsubMessage

        message = PubsubMessage(data=content, attributes={**sender, IDEMPOTENCY_KEY: key})
        self.pubsub[1].publish(topic=self.requests_topic, messages=[message], timeout=PUBLISH_WITHIN_S)


def storage_client(context: Context) -> "StorageClient":
    from google.cloud import storage

    return storage.Client(project=context.project, **_local(context.storage_host))


def default_credentials(project: str, *, replace: bool = False) -> "Credentials":
    """The caller's credentials. Those of a user without a quota project get `project`, or with `replace` every user's.

    A user's credentials belong to a project of Google's. APIs that charge the caller's project and not the resource's,
    such as Vertex AI, Resource Manager and IAM, refuse them there; charged to `project`, they require the permission
    serviceusage.services.use. A service account's are charged to its own project, and stay as they are.
    Source: https://cloud.google.com/docs/authentication/troubleshoot-adc (read 2026-11-26)

    Raises:
        google.auth.exceptions.DefaultCredentialsError: there are none.
    """
    import google.auth
    from google.oauth2.credentials import Credentials as UserCredentials

    credentials, _ = google.auth.default(scopes=[_SCOPE])
    if not isinstance(credentials, UserCredentials) or _QUOTA_VARIABLE in os.environ:
        return credentials
    if credentials.quota_project_id and not replace:
        return credentials
    charged: Credentials = credentials.with_quota_project(project)
    return charged


def log_reader(*, project: str, logging_host: str | None) -> "LoggingClient":
    from google.cloud import logging

    client: Any = logging.Client(project=project, _use_grpc=False, **_local(logging_host))
    # Each answer makes new loggers, and without a resource each of them asks a metadata server what it runs on.
    client.logger = partial(client.logger, resource=logging.Resource(type="global", labels={}))
    reader: LoggingClient = client
    return reader


def _local(host: str | None) -> dict[str, Any]:  # Any: keywords of three libraries
    """The arguments that point a client at a service of the local stack; none for Google Cloud."""
    from google.auth.credentials import AnonymousCredentials

    if host is None:
        return {}
    return {"credentials": AnonymousCredentials(), "client_options": {"api_endpoint": host}}


@contextmanager
def pubsub_clients(pubsub_host: str | None) -> "Iterator[tuple[SubscriberClient, PublisherClient]]":
    """Low-level clients, without the threads of the high-level ones; closed at the end.

    Args:
        pubsub_host: `host:port` of an emulator; None for Google Cloud.
    """
    from google.pubsub_v1 import PublisherClient, SubscriberClient

    if pubsub_host is None:
        with SubscriberClient() as subscriber, PublisherClient() as publisher:
            yield subscriber, publisher
        return
    import grpc
    from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
    from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

    unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(pubsub_host, options=unlimited) as channel:
        yield (
            SubscriberClient(transport=SubscriberGrpcTransport(channel=channel)),
            PublisherClient(transport=PublisherGrpcTransport(channel=channel)),
        )
