"""What is wrong with a request beyond its schema: one subject a module."""
