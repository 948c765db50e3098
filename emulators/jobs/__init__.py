"""Custom jobs whose replicas are real processes of this machine. `emulators.vertex` puts them behind the API."""
