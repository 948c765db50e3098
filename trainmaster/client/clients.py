"""Official clients for the local stack or Google Cloud, as environment variables say."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
    from google.cloud.logging import Client as LoggingClient
    from google.cloud.storage import Client as StorageClient
    from google.pubsub_v1 import PublisherClient, SubscriberClient


@dataclass(frozen=True, kw_only=True)
class Target:
    """A project and region, and the addresses of its services; `None` stands for Google Cloud's."""

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
    from google.cloud import storage

    return storage.Client(project=target.project, **_local(target.storage_host))


def job_client(*, region: str, vertex_host: str | None) -> "JobServiceClient":
    from google.cloud.aiplatform_v1.services.job_service import JobServiceClient

    regional = {"client_options": {"api_endpoint": f"{region}-aiplatform.googleapis.com"}}
    return JobServiceClient(transport="rest", **(_local(vertex_host) or regional))


def log_reader(*, project: str, logging_host: str | None) -> "LoggingClient":
    from google.cloud import logging

    return logging.Client(project=project, _use_grpc=False, **_local(logging_host))


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
