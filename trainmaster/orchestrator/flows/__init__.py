"""The order of core calls and port calls: intake, submission, admission, completion, retraining, and the reconciler."""
