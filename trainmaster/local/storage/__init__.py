"""Cloud Storage on this machine: the JSON API for unmodified clients, objects as plain files, true preconditions."""

from trainmaster.local.storage.app import Storage
from trainmaster.local.storage.delivery import Publish
from trainmaster.local.storage.serving import serve, served

__all__ = ["Publish", "Storage", "serve", "served"]
