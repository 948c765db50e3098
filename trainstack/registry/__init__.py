"""Artifact Registry on one machine: accepts pushed images, and notifies the topic `gcr`."""

from trainstack.registry.server import Registry, RegistryFailedError

__all__ = ["Registry", "RegistryFailedError"]
