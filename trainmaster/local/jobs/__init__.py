"""Custom jobs whose replicas are real processes of this machine. `trainmaster.local.vertex` serves their API."""
