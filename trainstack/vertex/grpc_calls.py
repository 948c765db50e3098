"""Vertex AI's gRPC calls, with the HTTP rules from google/cloud/aiplatform/v1/job_service.proto and others."""

from collections.abc import Iterator

from google.cloud.aiplatform_v1.types import custom_job, hyperparameter_tuning_job, job_service
from google.longrunning import operations_pb2  # type: ignore[import-untyped]
from google.protobuf import empty_pb2

from trainstack.transcoding import Method
from trainstack.transcoding.method import Services, method_from
from trainstack.vertex.resources.methods import methods

_HERE = "projects/*/locations/*"
_OPERATION = f"/v1/{{name={_HERE}/operations/*}}"
_KINDS = (
    ("customJobs", "custom_job", custom_job.CustomJob),
    (
        "hyperparameterTuningJobs",
        "hyperparameter_tuning_job",
        hyperparameter_tuning_job.HyperparameterTuningJob,
    ),
)


def services() -> Services:
    """The methods by service; operations are requested at the same address."""
    operation = operations_pb2.Operation
    resources: dict[str, list[Method]] = {}
    for service, method in methods():
        resources.setdefault(f"google.cloud.aiplatform.v1.{service}", []).append(method)
    return {
        **resources,
        "google.cloud.aiplatform.v1.JobService": list(_job_methods()),
        "google.longrunning.Operations": [
            method_from(f"GET {_OPERATION}", "GetOperation", operations_pb2.GetOperationRequest, operation),
            method_from(
                f"POST {_OPERATION}:wait",
                "WaitOperation",
                operations_pb2.WaitOperationRequest,
                operation,
                body="*",
            ),
        ],
    }


def _job_methods() -> Iterator[Method]:
    for collection, field, resource in _KINDS:
        job, jobs = f"/v1/{{name={_HERE}/{collection}/*}}", f"/v1/{{parent={_HERE}}}/{collection}"
        kind = resource.__name__
        answers = getattr(job_service, f"List{kind}sResponse")
        for rule, name, answer, body in (
            (f"POST {jobs}", f"Create{kind}", resource, field),
            (f"GET {job}", f"Get{kind}", resource, ""),
            (f"GET {jobs}", f"List{kind}s", answers, ""),
            (f"POST {job}:cancel", f"Cancel{kind}", empty_pb2.Empty, "*"),
            (f"DELETE {job}", f"Delete{kind}", operations_pb2.Operation, ""),
        ):
            yield method_from(rule, name, getattr(job_service, f"{name}Request"), answer, body=body)
