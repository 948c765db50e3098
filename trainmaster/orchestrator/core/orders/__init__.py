"""Orders to cancel a run, to fire a rule, and to roll a champion back."""
