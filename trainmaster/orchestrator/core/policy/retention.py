"""The policy's retention: how long and how many runs, checkpoints and models are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Part(StrEnum):
    """What a run leaves behind, as the policy names it."""

    RUNS = "runs"
    """Its record and all that belongs to it in the ledger."""
    CHECKPOINTS = "checkpoints"
    MODELS = "models"
    """Its whole output directory."""


@dataclass(frozen=True, kw_only=True)
class Keep:
    """What is older than both, where both are set, is removed. `keep_last` counts for each model name."""

    older_than_days: int | None = None
    keep_last: int | None = None

    def is_over(self, age: timedelta, newer: int) -> bool:
        """Whether something of this age, with so many newer ones of its model, is no longer kept."""
        is_old = self.older_than_days is None or age >= timedelta(days=self.older_than_days)
        return is_old and (self.keep_last is None or newer >= self.keep_last)


Retention = Mapping[str, Keep]
"""By part; nothing is removed of a part that the policy does not name."""
