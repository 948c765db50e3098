"""A tuning: its trials, what they were given and what they measured."""
