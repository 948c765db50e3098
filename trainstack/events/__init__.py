"""Event delivery to functions: Eventarc's transport and delivery, and Cloud Scheduler's ticks."""
