"""Events that kept failing: what they are, why they failed, and putting them back."""
