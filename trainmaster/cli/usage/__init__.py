"""Suggestions for a command line that names something unknown."""
