"""What the replicas of a worker pool run: an image's program, or a Python package's module."""
