"""Reads and changes runs through the official clients, on the local stack and in the cloud."""
