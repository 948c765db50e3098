"""Reads a document in the spelling of a Google API, and writes it as one in our own."""
