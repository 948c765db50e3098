"""Every type of notice that the service publishes, with its payload and its id."""
