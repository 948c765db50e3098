"""The functions' platform: one functions-framework process per entry point, kept running, its output logged."""

from emulators.functions.function import BucketTrigger, DeadLetter, Function, TopicTrigger, Trigger
from emulators.functions.host import FunctionsHost
from emulators.functions.instance import Instance, StartFailedError

__all__ = [
    "BucketTrigger",
    "DeadLetter",
    "Function",
    "FunctionsHost",
    "Instance",
    "StartFailedError",
    "TopicTrigger",
    "Trigger",
]
