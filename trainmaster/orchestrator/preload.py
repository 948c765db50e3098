"""Imports at once what the functions import with their first events.

An instance in the cloud starts sooner without it. The local stack forks all functions from one process, which imports it
before.
"""

from importlib import import_module

from trainmaster.partial_import import VERTEX_CLIENT, import_parts_of

import_parts_of(*VERTEX_CLIENT)
for name in (
    "google.auth.transport.requests",
    "google.cloud.aiplatform_v1.services.job_service",
    "google.cloud.logging",
    "google.cloud.pubsub_v1",
    "google.cloud.storage",
    "jsonschema.validators",
):
    import_module(name)
