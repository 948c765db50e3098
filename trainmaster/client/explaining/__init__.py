"""Explains runs and models: every step that led to them."""
