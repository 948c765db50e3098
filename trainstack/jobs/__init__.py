"""Custom jobs whose replicas are real processes of this machine. `trainstack.vertex` serves their API."""
