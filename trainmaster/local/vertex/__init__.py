"""Vertex AI's JobService on one machine: custom jobs and tuning jobs behind one API, as a part of the stack."""

from trainmaster.local.vertex.server import Jobs, MountChoice, RuntimeChoice, serve

__all__ = ["Jobs", "MountChoice", "RuntimeChoice", "serve"]
