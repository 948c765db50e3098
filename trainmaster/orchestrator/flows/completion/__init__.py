"""A run changes state on record: it gets its job, waits for one, follows it to its end; and what follows the end."""
