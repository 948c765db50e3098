"""The metadata server of one replica: its identity and its access tokens."""

from trainmaster.local.metadata.api import InstanceMetadata, application

__all__ = ["InstanceMetadata", "application"]
