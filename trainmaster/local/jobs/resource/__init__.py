"""A custom job as the API knows it: read, checked, moved from state to state."""
