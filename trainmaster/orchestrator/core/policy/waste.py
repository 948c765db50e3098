"""What the policy calls a job that wastes its machines, and what is done about it."""

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_WINDOW_S = 1800


class ThenDo(StrEnum):
    """What is done about such a job beside the notice."""

    NOTIFY = "notify"
    CANCEL = "cancel"


@dataclass(frozen=True, kw_only=True)
class WastePolicy:
    """When a running job is reported, once a run; None: not looked for.

    Its GPUs are used less than `min_gpu_percent` over `window_s`, or it has logged nothing for `silent_s`.
    """

    then: ThenDo = ThenDo.NOTIFY
    min_gpu_percent: float | None = None
    window_s: int = DEFAULT_WINDOW_S
    silent_s: int | None = None
