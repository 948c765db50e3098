"""Packs the folder of a script and uploads it."""
