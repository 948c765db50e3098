"""What a run left behind: `download` and `tensorboard`."""
