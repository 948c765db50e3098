"""Child processes that always end with the stack that started them (Linux only)."""

from trainmaster.local.process.child import Child
from trainmaster.local.process.output import Stream
from trainmaster.local.process.processes import SYSTEM_PATH, ProcessGuard

__all__ = ["SYSTEM_PATH", "Child", "ProcessGuard", "Stream"]
