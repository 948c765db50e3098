"""The evaluator: a replica that evaluates each checkpoint as it appears, and trains nothing."""
