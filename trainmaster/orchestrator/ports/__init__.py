"""The outside in the flows' terms. Every error that a port may raise is named.

Any port may also raise ServiceFailed: the service did not answer, and a later delivery may succeed.
"""
