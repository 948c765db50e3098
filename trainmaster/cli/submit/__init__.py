"""The verbs that make a run of files: `init`, `submit` and `wait`."""
