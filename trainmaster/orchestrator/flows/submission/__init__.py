"""A request becomes a run, and the run is submitted: immediately, in its turn, or again after a crash."""
