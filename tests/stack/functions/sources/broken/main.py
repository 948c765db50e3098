"""Fails while it is imported."""

raise ImportError("a dependency is not installed")
