"""`trainmaster dead-letters`: the events that kept failing, listed with their reasons or put back, once each."""
