"""Cloud Storage on this machine: the JSON API for unmodified clients, objects as plain files, working preconditions."""

from trainstack.storage.server import Storage, serve

__all__ = ["Storage", "serve"]
