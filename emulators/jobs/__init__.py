"""Vertex AI JobService on one machine: custom jobs whose replicas are real processes."""

from emulators.jobs.stack_part import Jobs, MountChoice, serve

__all__ = ["Jobs", "MountChoice", "serve"]
