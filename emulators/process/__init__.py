"""Child processes that never outlive the stack that started them (Linux only)."""

from emulators.process.child import Child, Stream
from emulators.process.processes import ProcessGuard

__all__ = ["Child", "ProcessGuard", "Stream"]
