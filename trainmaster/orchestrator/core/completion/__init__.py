"""The end of a run: from a log entry to the outcome of its job, and from there to the run record."""
