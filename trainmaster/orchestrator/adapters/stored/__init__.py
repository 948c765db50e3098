"""The ports over any object store: which object holds what, and under which precondition."""
