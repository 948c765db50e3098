"""JobService's gRPC calls, with the HTTP rules from google/cloud/aiplatform/v1/job_service.proto."""

from collections.abc import Iterator

from google.cloud.aiplatform_v1.types import custom_job, hyperparameter_tuning_job, job_service
from google.longrunning import operations_pb2  # type: ignore[import-untyped]
from google.protobuf import empty_pb2

from trainstack.transcoding import Method
from trainstack.transcoding.method import Services

_HERE = "projects/*/locations/*"
_OPERATION = f"{_HERE}/operations/*"
_KINDS = (
    ("CustomJob", "customJobs", "custom_job", custom_job.CustomJob),
    (
        "HyperparameterTuningJob",
        "hyperparameterTuningJobs",
        "hyperparameter_tuning_job",
        hyperparameter_tuning_job.HyperparameterTuningJob,
    ),
)


def services() -> Services:
    """The methods by service; operations are requested at the same address."""
    return {
        "google.cloud.aiplatform.v1.JobService": list(_jobs()),
        "google.longrunning.Operations": [
            Method(
                name=name,
                request=request,
                response=operations_pb2.Operation,
                verb=verb,
                path=path,
                body=body,
            )
            for name, request, verb, path, body in (
                ("GetOperation", operations_pb2.GetOperationRequest, "GET", f"/v1/{{name={_OPERATION}}}", ""),
                (
                    "WaitOperation",
                    operations_pb2.WaitOperationRequest,
                    "POST",
                    f"/v1/{{name={_OPERATION}}}:wait",
                    "*",
                ),
            )
        ],
    }


def _jobs() -> Iterator[Method]:
    for kind, collection, field, resource in _KINDS:
        job, parent = f"{{name={_HERE}/{collection}/*}}", f"{{parent={_HERE}}}"
        for verb, asked, answer, http, path, body in (
            ("Create", kind, resource.pb(), "POST", f"/v1/{parent}/{collection}", field),
            ("Get", kind, resource.pb(), "GET", f"/v1/{job}", ""),
            ("List", f"{kind}s", None, "GET", f"/v1/{parent}/{collection}", ""),
            ("Cancel", kind, empty_pb2.Empty, "POST", f"/v1/{job}:cancel", "*"),
            ("Delete", kind, operations_pb2.Operation, "DELETE", f"/v1/{job}", ""),
        ):
            name = f"{verb}{asked}"
            yield Method(
                name=name,
                request=getattr(job_service, f"{name}Request").pb(),
                response=answer or getattr(job_service, f"{name}Response").pb(),
                verb=http,
                path=path,
                body=body,
            )
