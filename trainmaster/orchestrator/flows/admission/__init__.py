"""What a run holds and waits for before it is submitted: its place and its slots."""
