"""A request becomes a run, and the run is submitted: at once, in its turn, or again after a crash."""
