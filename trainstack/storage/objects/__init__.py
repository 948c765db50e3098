"""Objects, their bytes, and where both are stored."""
