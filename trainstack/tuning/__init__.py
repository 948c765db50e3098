"""Hyperparameter tuning: suggestions, early stopping, and the jobs of trials."""
