"""`trainmaster plan`."""
