"""The flags of `python -m trainer.task`."""
