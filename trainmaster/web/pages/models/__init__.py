"""The models of the console."""
