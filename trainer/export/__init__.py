"""The SavedModel and its manifest, which a finished run leaves."""
