"""Cloud Logging v2 over REST, for the unmodified official HTTP client and gcloud."""

from trainstack.logging.server import Logging, serve

__all__ = ["Logging", "serve"]
