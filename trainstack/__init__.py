"""Google Cloud for training on one machine: its services, over their own protocols, for the official clients."""
