"""Translates CustomJob and HyperparameterTuningJob documents, as gcloud takes them, into our own dialect."""
