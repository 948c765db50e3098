"""A retraining rule: how it is read, checked and kept."""
