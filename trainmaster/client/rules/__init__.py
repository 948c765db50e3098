"""Reads, checks, drops, fires and removes retraining rules."""
