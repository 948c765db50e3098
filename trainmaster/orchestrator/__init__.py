"""The orchestrator: an event becomes a training job, once, and the job's end becomes a record."""
