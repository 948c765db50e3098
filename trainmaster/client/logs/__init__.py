"""The log of a run: every line of its jobs, once, in the order of time."""
