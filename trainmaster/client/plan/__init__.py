"""What would happen to a request if it were submitted now."""
