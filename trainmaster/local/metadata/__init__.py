"""The metadata server of one replica: who it is, and tokens that say so."""

from trainmaster.local.metadata.api import Identity, application

__all__ = ["Identity", "application"]
