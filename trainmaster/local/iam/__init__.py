"""Identity and Access Management: who has which role on what, asked and never enforced."""

from trainmaster.local.iam.api import application
from trainmaster.local.iam.service import Grant, Grants, member_of

__all__ = ["Grant", "Grants", "application", "member_of"]
