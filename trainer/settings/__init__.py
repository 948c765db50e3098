"""The settings of a run and of its workload, from Python or from a command line."""
