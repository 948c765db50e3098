"""Digits."""
