"""A run gets its job, waits for one, or ends without one."""
