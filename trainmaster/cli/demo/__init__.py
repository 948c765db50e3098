"""The demos: follow a dropped request from start to end on this machine, and check the result."""
