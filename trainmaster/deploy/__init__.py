"""Definitions of a deployment's resources and permissions, and the commands that deploy, check and remove it."""
