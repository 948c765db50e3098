"""What lists and explains runs: their index, the queue, and documents of the ledger."""
