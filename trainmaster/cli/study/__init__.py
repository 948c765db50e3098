"""A hyperparameter study on the terminal."""
