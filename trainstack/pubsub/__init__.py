"""Cloud Pub/Sub over gRPC, for unmodified official clients: set PUBSUB_EMULATOR_HOST to its `host:port`."""

from trainstack.pubsub.server import PubSub, serve

__all__ = ["PubSub", "serve"]
