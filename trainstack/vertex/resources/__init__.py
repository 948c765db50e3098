"""Vertex AI's resources beside jobs: training pipelines, models, metadata, TensorBoards, and their operations."""
