"""The functions platform: one functions-framework process per entry point, kept running, its output logged."""

from trainstack.functions.function import (
    BucketTrigger,
    DeadLetter,
    Function,
    FunctionDeployment,
    TopicTrigger,
    Trigger,
)
from trainstack.functions.host import FunctionsHost, fork_server
from trainstack.functions.instance import Instance, StartFailedError

__all__ = [
    "BucketTrigger",
    "DeadLetter",
    "Function",
    "FunctionDeployment",
    "FunctionsHost",
    "Instance",
    "StartFailedError",
    "TopicTrigger",
    "Trigger",
    "fork_server",
]
