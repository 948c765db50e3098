"""From an event to the request value that Vertex AI is sent: event -> request -> spec -> submission."""
