"""Service libraries are imported by the first call that needs them, one at a time.

An instance's first events come in several threads at once. Python's import system lets two threads that
import one package from different ends see it half initialised, to get out of a deadlock; Google's
packages import themselves in such circles, and a half initialised one stays broken for the process's life.
"""

import threading

IMPORTING = threading.RLock()
"""Held around every import of a service library; free of contention once they are loaded."""
