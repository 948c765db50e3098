"""Whole stacks. A package, so that its shared stack ends with the last of its tests in a row."""
