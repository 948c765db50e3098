"""Vertex AI's JobService on one machine: custom jobs and tuning jobs behind one API, as a part of the stack."""

from emulators.vertex.stack_part import Jobs, MountChoice, serve

__all__ = ["Jobs", "MountChoice", "serve"]
