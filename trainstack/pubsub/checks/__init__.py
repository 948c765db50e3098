"""Validation of requests."""
