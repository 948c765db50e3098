"""The metadata server of one replica: who it is, and tokens that say so."""

from trainmaster.local.metadata.api import InstanceMetadata, application

__all__ = ["InstanceMetadata", "application"]
