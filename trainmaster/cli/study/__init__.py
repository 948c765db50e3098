"""A hyperparameter study as a value, on the terminal, as a figure and as a page."""
