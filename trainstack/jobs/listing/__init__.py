"""Selects the jobs for a list call: by label, by filter, page by page."""
