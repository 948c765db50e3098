"""The orchestrator: turns an event into exactly one training job, and the job's end into a record."""
