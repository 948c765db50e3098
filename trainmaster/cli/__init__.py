"""The command `trainmaster`: the same verbs for the local stack and for the cloud, one module for each verb."""
