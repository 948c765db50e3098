"""Cloud Storage on this machine: the JSON API for unmodified clients, objects as plain files, true preconditions."""

from emulators.storage.app import Storage
from emulators.storage.delivery import Publish
from emulators.storage.serving import serve, served

__all__ = ["Publish", "Storage", "serve", "served"]
