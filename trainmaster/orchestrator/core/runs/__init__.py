"""A run: its states, its record and its drop status."""
