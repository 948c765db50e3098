"""Artifact Registry on one machine: accepts pushed images, and notifies the topic `gcr`."""
