"""What the service publishes: every type of notice, with its payload and its id."""
