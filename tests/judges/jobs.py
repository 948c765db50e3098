"""Vertex AI's jobs before the judge: what JobService's discovery document says against one before it is created."""

from collections.abc import Mapping

from tests.judges.discovery import Side, api
from trainmaster.orchestrator.core.job_names import JobKind

SCHEMAS: Mapping[JobKind, str] = {JobKind.CUSTOM: "CustomJob", JobKind.TUNING: "HyperparameterTuningJob"}


def job_faults(kind: JobKind, body: object, *, spec_alone: bool = False) -> list[str]:
    """`spec_alone`: the body is a CustomJobSpec, as gcloud's --config takes it."""
    schema = "CustomJobSpec" if spec_alone else SCHEMAS[kind]
    return api("aiplatform.v1").faults(f"GoogleCloudAiplatformV1{schema}", body, Side.REQUEST)
