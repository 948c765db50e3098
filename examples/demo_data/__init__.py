"""Drawings that stand in for the photographs of public data sets."""
