"""What the service keeps in buckets: which object holds what, and under which precondition it changes.

They are built on the port `ports/objects.py` alone, so one implementation serves Cloud Storage and memory.
"""
