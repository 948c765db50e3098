"""The verbs of the local stack: `up`, `down` and `stack`."""
