"""Hyperparameter tuning: what to try next, when to stop a trial, and the jobs that try it."""
