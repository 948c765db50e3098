"""`trainmaster dead-letters`: lists the events that kept failing, with reasons, or replays each once."""
