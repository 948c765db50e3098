"""Reads and changes runs through the official clients, here and in the cloud."""
