"""From a log entry to the run's end: entry -> outcome -> record."""
