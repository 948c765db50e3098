"""Documents in buckets: which object holds what, and under which precondition it changes.

All stores use only the port `ports/objects.py`, so one implementation serves Cloud Storage and memory.
"""
