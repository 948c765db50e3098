"""The number of a project, by which the services name it where they do not name its id."""

import hashlib


def project_number(project: str) -> str:
    """The number of a project; a stand-in of 12 digits that depends on the id alone, for a local project."""
    if project.isdigit():
        return project
    digest = int.from_bytes(hashlib.sha256(project.encode()).digest()[:8], "big")
    return str(100_000_000_000 + digest % 900_000_000_000)
