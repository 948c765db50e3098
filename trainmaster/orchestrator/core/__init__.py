"""Decisions: values in, values out. No clock, network, environment, randomness or logging."""
