"""What a request may ask for."""
