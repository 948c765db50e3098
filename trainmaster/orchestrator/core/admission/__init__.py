"""Decisions before a submission: when and where a run may be submitted, and at what cost."""
