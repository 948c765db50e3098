"""Injections by name at every boundary of the local stack: asked for by a test, struck by an emulator, accounted for."""

from trainmaster.local.injections.active import Injections
from trainmaster.local.injections.injection import Call, Injection, Kind, Plan
from trainmaster.local.injections.plan import BadInjectionsError, plan_from

__all__ = ["BadInjectionsError", "Call", "Injection", "Injections", "Kind", "Plan", "plan_from"]
