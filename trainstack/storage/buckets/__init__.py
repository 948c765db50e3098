"""Buckets: their settings, where they are, and who may use them."""
