"""A run enters a state, ends, and is shown: shared by submission and completion."""
