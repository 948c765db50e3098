"""A job's life from waiting for room to its last log line."""
