"""Identity and Access Management: who has which role on what, and what each method of the services requires."""

from trainstack.iam.api import application
from trainstack.iam.service import Grant, Grants

__all__ = ["Grant", "Grants", "application"]
