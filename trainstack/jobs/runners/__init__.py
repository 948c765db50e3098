"""Runs a job, from waiting for capacity to its terminal log line."""
