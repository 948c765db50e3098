"""What takes a job from waiting for room to its last log line."""
