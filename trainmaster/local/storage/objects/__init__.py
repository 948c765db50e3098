"""What an object is, which bytes it has, and where both are kept."""
