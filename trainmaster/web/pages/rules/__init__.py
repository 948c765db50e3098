"""The rules of the console."""
