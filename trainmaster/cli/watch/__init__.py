"""`trainmaster watch`, and what the demos show in the same way."""
