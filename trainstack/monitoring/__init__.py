"""Cloud Monitoring for the official REST surface: what each replica of a job takes of the machine that it asked for."""

from trainstack.monitoring.server import Monitoring

__all__ = ["Monitoring"]
