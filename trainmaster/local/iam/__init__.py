"""Identity and Access Management: who has which role on what. Permissions are reported, never enforced."""

from trainmaster.local.iam.api import application
from trainmaster.local.iam.service import Grant, Grants

__all__ = ["Grant", "Grants", "application"]
