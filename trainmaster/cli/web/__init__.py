"""`trainmaster web`."""
