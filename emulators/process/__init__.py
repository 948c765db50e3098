"""Child processes that never outlive the stack that started them (Linux only)."""

from emulators.process.child import Child
from emulators.process.output import Stream
from emulators.process.processes import SYSTEM_PATH, ProcessGuard

__all__ = ["SYSTEM_PATH", "Child", "ProcessGuard", "Stream"]
