"""What submission and completion share: a run enters a state, ends, and is shown."""
