"""The functions platform: one functions-framework process per entry point, kept running, its output logged."""

from trainmaster.local.functions.function import (
    BucketTrigger,
    DeadLetter,
    Deployment,
    Function,
    TopicTrigger,
    Trigger,
)
from trainmaster.local.functions.host import FunctionsHost, fork_server
from trainmaster.local.functions.instance import Instance, StartFailedError

__all__ = [
    "BucketTrigger",
    "DeadLetter",
    "Deployment",
    "Function",
    "FunctionsHost",
    "Instance",
    "StartFailedError",
    "TopicTrigger",
    "Trigger",
    "fork_server",
]
