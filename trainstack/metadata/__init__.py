"""The metadata server of one replica: its identity and its access tokens."""

from trainstack.metadata.api import InstanceMetadata, application

__all__ = ["InstanceMetadata", "application"]
