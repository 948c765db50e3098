"""The verbs that plan and start runs of files: `init`, `plan`, `submit`, `again` and `wait`."""
