"""A training job of AI Platform Training, said in our own way."""
