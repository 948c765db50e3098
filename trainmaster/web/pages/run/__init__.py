"""The page of one run: its way from the event to the record, its replicas, curves, log, request and model."""
