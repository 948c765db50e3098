"""The files that a run left behind, and their download."""
