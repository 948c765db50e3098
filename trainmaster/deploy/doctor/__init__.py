"""`trainmaster doctor`: tests a deployment end to end, and reports what fails and how to fix it."""
