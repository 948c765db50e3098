"""Events on their way to functions: Eventarc's transport and delivery, and Cloud Scheduler's ticks."""
