"""`trainmaster doctor`: a deployment tries itself, and names what stands in its way."""
