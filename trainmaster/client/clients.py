"""Official clients, pointed where the environment says: the local stack or Google Cloud.

The functions' own settings are not imported: the console is one more user of the same APIs.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
    from google.cloud.logging import Client as LoggingClient
    from google.cloud.storage import Client as StorageClient
    from google.pubsub_v1 import PublisherClient, SubscriberClient


@dataclass(frozen=True, kw_only=True)
class Target:
    """A project and region, and where its services answer; `None` stands for Google Cloud."""

    project: str
    region: str
    inbox_bucket: str
    ledger_bucket: str
    models_bucket: str
    storage_host: str | None
    vertex_host: str | None
    logging_host: str | None


def target_from(environment: Mapping[str, str]) -> Target:
    """The target that `environment` names.

    Raises:
        KeyError: one of the required variables is missing; `stack.env` holds them all.
    """
    return Target(
        project=environment["GOOGLE_CLOUD_PROJECT"],
        region=environment["TRAINMASTER_REGION"],
        inbox_bucket=environment["TRAINMASTER_INBOX_BUCKET"],
        ledger_bucket=environment["TRAINMASTER_LEDGER_BUCKET"],
        models_bucket=environment["TRAINMASTER_MODELS_BUCKET"],
        storage_host=environment.get("STORAGE_EMULATOR_HOST"),
        vertex_host=environment.get("VERTEX_EMULATOR_HOST"),
        logging_host=environment.get("LOGGING_EMULATOR_HOST"),
    )


def storage_client(target: Target) -> "StorageClient":
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    if target.storage_host is None:
        return storage.Client(project=target.project)
    return storage.Client(
        project=target.project,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": target.storage_host},
    )


def job_client(*, region: str, vertex_host: str | None) -> "JobServiceClient":
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.aiplatform_v1.services.job_service import JobServiceClient

    if vertex_host is None:
        endpoint = f"{region}-aiplatform.googleapis.com"
        return JobServiceClient(transport="rest", client_options={"api_endpoint": endpoint})
    return JobServiceClient(
        transport="rest",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": vertex_host},
    )


def logging_client(target: Target) -> "LoggingClient":
    return log_reader(project=target.project, logging_host=target.logging_host)


def log_reader(*, project: str, logging_host: str | None) -> "LoggingClient":
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import logging

    if logging_host is None:
        return logging.Client(project=project, _use_grpc=False)
    return logging.Client(
        project=project,
        credentials=AnonymousCredentials(),
        _use_grpc=False,
        client_options={"api_endpoint": logging_host},
    )


@contextmanager
def pubsub_clients(pubsub_host: str | None) -> "Iterator[tuple[SubscriberClient, PublisherClient]]":
    """Plain clients of every call, without the threads of the high-level ones; closed at the end.

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
