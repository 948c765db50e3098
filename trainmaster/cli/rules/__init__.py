"""Verbs for what starts runs and what comes of them: `rules` and `champions`."""
