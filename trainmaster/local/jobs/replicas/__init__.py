"""The machines of a job: what each one sees, its environment, its process, its end."""
