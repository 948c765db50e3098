"""Translates CustomJob and HyperparameterTuningJob documents, as gcloud takes them, into our own dialect.

Either spelling of a key, numbers for words, and nothing or "" for absent are read as the API reads them, so a
job is accepted as `describe` prints it. Fields that only the service writes are ignored with a warning.
"""
