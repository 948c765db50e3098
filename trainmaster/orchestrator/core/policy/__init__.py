"""The policy file: what requests may ask for."""
