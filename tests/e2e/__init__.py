"""Tests of whole stacks. A package, so that its shared stack stops after the last of its tests."""
