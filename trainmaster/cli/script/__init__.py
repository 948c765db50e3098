"""Messages about a script, before and while it is sent."""
