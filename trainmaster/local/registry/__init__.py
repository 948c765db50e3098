"""Artifact Registry's part in a project, on one machine: images are pushed, and the topic `gcr` hears of them."""

from trainmaster.local.registry.server import Registry, RegistryFailedError

__all__ = ["Registry", "RegistryFailedError"]
