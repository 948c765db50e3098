"""Hypothesis asserts no timings: how fast a machine draws examples is no property of the code."""

from hypothesis import HealthCheck, settings

settings.register_profile("trainmaster", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trainmaster")
