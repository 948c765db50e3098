"""The verbs for the results of a run: `download` and `tensorboard`."""
