"""Checkpoints: written by all replicas, uploaded by the chief, read by the next attempt."""
