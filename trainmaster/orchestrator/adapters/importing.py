"""Service libraries are imported by the first call that needs them, one at a time.

An instance's first events arrive in several threads at once. Without a lock, a mixed burst on a new instance left
`google.cloud.aiplatform_v1` half initialised, and every later submission of that process failed with an ImportError.
The exact interleaving is not known; with the lock it has not occurred again.
"""

import threading

IMPORTING = threading.RLock()
"""Held around every import of a service library; once they are loaded, only for moments."""
