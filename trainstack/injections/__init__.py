"""Named fault injections at every boundary of the local stack: set by a test, applied by an emulator, and counted."""

from trainstack.injections.active import Injection, InjectionKind, InjectionPlan, Injections
from trainstack.injections.plan import BadInjectionsError, plan_from

__all__ = ["BadInjectionsError", "Injection", "InjectionKind", "InjectionPlan", "Injections", "plan_from"]
