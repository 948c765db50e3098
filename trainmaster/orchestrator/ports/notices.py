"""The topic of the notices."""

from typing import Protocol

from trainmaster.orchestrator.core.notices.notice import Notice


class Notices(Protocol):
    """Where runs, champions and rules are told of."""

    def publish(self, notice: Notice) -> None:
        """Tell it; returns once the service has it. Subscribers may see it more than once."""
        ...
