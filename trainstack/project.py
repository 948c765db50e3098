"""Project numbers, which the services use in some names in place of the id."""

import hashlib


def project_number(project: str) -> str:
    """The number of a local project: 12 digits that depend only on its id."""
    if project.isdigit():
        return project
    digest = int.from_bytes(hashlib.sha256(project.encode()).digest()[:8], "big")
    return str(100_000_000_000 + digest % 900_000_000_000)
