"""The plan of a request: its jobs, their cost, and the queue before it."""
