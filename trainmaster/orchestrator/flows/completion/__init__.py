"""A recorded run changes state: it gets its job, waits for one, or ends; and the steps that follow the end."""
