"""The evaluator: a replica beside the training that evaluates each checkpoint as it appears, and trains nothing."""
