"""The first day of a deployment: four small runs, and what the services answered, kept as fixtures of tests.

The maintainers test without a project in Google Cloud, and a person who has one may give half an hour. So it is one
command, with a cost that is stated first.
"""
