"""The programs of a worker pool's replicas: an image's program, or a Python package's module."""
