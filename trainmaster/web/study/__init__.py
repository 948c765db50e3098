"""How a study is shown: on its page, and in a file that needs nothing else."""
