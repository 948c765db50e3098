"""What trainers wrote."""

from typing import Protocol

from trainmaster.orchestrator.core.completion.outcome import ModelDirectory


class Models(Protocol):
    """What trainers left behind."""

    def look(self, model_uri: str) -> ModelDirectory:
        """The files under the `gs://…/` directory, and its manifest where there is one of decent size."""
        ...
