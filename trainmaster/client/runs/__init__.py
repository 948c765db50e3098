"""Lists of runs and facts about them: the index, the queue, and documents of the ledger."""
