"""The functions platform: one functions-framework process per entry point, its output logged."""
