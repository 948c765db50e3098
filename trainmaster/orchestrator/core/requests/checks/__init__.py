"""Checks of a request beyond its schema: one subject a module."""
