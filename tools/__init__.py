"""The project's own tools, run in a checkout with `make`: set-up, locks, the price table, the first day."""
