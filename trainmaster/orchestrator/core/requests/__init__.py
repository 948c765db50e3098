"""Requests, from an event to the value that Vertex AI is sent: event -> request -> spec -> submission."""
