"""A run: its states, its record, and what it went through."""
