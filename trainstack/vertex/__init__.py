"""Vertex AI's JobService on one machine: custom jobs and tuning jobs behind one API, as a part of the stack."""

from trainstack.vertex.server import IsolationChoice, Jobs, RuntimeChoice, serve

__all__ = ["IsolationChoice", "Jobs", "RuntimeChoice", "serve"]
