"""Events that may fire rules: one module for each kind of message."""
