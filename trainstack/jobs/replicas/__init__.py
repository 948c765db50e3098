"""The replicas of a job: their files, environment, process and exit."""
