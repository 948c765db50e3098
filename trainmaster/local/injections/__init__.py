"""Faults by name at every boundary of the local stack: asked for by a test, struck by an emulator, accounted for."""

from trainmaster.local.injections.fault import Fault, Kind, Plan
from trainmaster.local.injections.harness import Faults
from trainmaster.local.injections.point import Call
from trainmaster.local.injections.reading import BadFaultsError, plan_from

__all__ = ["BadFaultsError", "Call", "Fault", "Faults", "Kind", "Plan", "plan_from"]
