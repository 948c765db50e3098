"""Custom jobs whose replicas are real processes of this machine. `trainmaster.local.vertex` puts them behind the API."""
