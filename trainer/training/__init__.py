"""The training of one attempt: model, steps, epochs, progress."""
