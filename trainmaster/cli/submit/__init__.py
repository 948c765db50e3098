"""From files to a run: `init`, `submit` and `wait`."""
