"""The `trainmaster` command: talks to the same APIs on the local stack and in the cloud."""
