"""One run, watched: its record, its job, its log, and its trials."""
