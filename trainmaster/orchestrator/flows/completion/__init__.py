"""From the end of a job to the end of its run, and what follows."""
