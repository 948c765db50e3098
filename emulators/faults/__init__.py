"""Faults by name at every boundary of the local stack: asked for by a test, struck by an emulator, accounted for."""

from emulators.faults.fault import Fault, Kind, Plan
from emulators.faults.harness import Faults
from emulators.faults.point import Call
from emulators.faults.reading import BadFaultsError, plan_from

__all__ = ["BadFaultsError", "Call", "Fault", "Faults", "Kind", "Plan", "plan_from"]
