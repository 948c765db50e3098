"""Six trials search for the best model: the demo of a tuning."""
