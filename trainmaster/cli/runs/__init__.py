"""`trainmaster ls`, `status`, `why` and `queue`: what runs there are, and why each is as it is."""
