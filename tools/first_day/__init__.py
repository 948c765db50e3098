"""The first day of a deployment: four small runs, and what the services answered, kept as fixtures of tests."""
