"""A study, shown on its page and in a file that needs nothing else."""
