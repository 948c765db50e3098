"""The command `trainmaster`: the same verbs for the local stack and the cloud, one module per verb."""
