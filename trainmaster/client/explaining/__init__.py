"""Explains runs and models: what led to them, and what usually repairs a failure."""
