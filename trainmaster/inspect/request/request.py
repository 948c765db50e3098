"""The part of a request that a program must fit, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """Of a tuning parameter, as the services name them in lower case."""

    DOUBLE = "double"
    INTEGER = "integer"
    DISCRETE = "discrete"
    CATEGORICAL = "categorical"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """`sample` is one legal value as a trial gets it on its command line; discrete values come as `64.0`."""

    name: str
    kind: Kind
    sample: str


@dataclass(frozen=True, kw_only=True)
class Request:
    """Counts are of replicas that run the chief's program: a role with an image of its own counts as 0.

    `image` is the chief's, or the executor's of a Python package. `says_master`: TF_CONFIG calls the
    chief `master`. `restarts_together`: all replicas restart when one does.
    """

    path: str
    is_tuning: bool = False
    metrics: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    module: str | None = None
    image: str | None = None
    workers: int = 0
    parameter_servers: int = 0
    evaluators: int = 0
    says_master: bool = False
    restarts_together: bool = False
    job_dir: str | None = None
