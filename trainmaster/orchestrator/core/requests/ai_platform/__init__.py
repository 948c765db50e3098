"""Translates training jobs of AI Platform Training to the project's dialect."""
