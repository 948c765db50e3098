"""Faults by name at every boundary of the local stack: asked for by a test, struck by an emulator, accounted for."""

from emulators.faults.fault import BadFaultsError, Fault, Kind, Plan, plan_from
from emulators.faults.harness import Faults
from emulators.faults.point import Call

__all__ = ["BadFaultsError", "Call", "Fault", "Faults", "Kind", "Plan", "plan_from"]
