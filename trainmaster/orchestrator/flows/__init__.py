"""Calls core and ports in order: intake, submission, admission, completion, retraining, and the reconciler."""
