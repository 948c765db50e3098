"""What a finished run leaves: the SavedModel and its manifest."""
