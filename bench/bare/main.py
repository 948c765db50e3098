"""The function most people write: the high-level SDK imported at the top, and a submission.

Nothing is checked, claimed or recorded. It is the other side of bench/cold_start.py.
"""

import os

import functions_framework
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform

aiplatform.init(
    project=os.environ["GOOGLE_CLOUD_PROJECT"],
    location=os.environ["TRAINMASTER_REGION"],
    staging_bucket=f"gs://{os.environ['TRAINMASTER_MODELS_BUCKET']}",
    credentials=AnonymousCredentials(),
    api_endpoint=os.environ["VERTEX_EMULATOR_HOST"],
    api_transport="rest",
)


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def on_request_uploaded(_event: object) -> None:
    aiplatform.CustomJob(
        display_name="bare",
        worker_pool_specs=[
            {
                "machine_spec": {"machine_type": "n1-standard-4"},
                "replica_count": 1,
                "container_spec": {"image_uri": os.environ["BENCH_IMAGE"]},
            }
        ],
        base_output_dir=f"gs://{os.environ['TRAINMASTER_MODELS_BUCKET']}/bare",
    ).submit()
