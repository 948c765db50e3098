"""When and where a run may be submitted, and at what cost: pure decisions that flows ask for before they submit."""
