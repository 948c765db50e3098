"""A custom job as the API defines it: parsed, validated, moved from state to state."""
