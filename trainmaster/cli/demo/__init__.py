"""The demos: what a user would type, on a fresh local stack, from an example to a model."""
