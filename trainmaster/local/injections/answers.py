"""Vertex AI's own refusals of a project or an account, word for word, for injections that name one.

Sources: the texts and details that users quoted, linked beside each; reasons: google/api/error_reason.proto.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import JSONResponse

from trainmaster.local.http import google_error

_API = "aiplatform.googleapis.com"
_TYPE = "type.googleapis.com/google.rpc."
_PLACE = re.compile(r"/projects/([^/]+)/locations/([^/]+)")
_UID = "eYhDkfYCu-dOCjuj8X4Am9"
NUMBER = "123456789012"
_CONSUMER = {"consumer": "projects/{project}", "service": _API}


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """`details` are `google.rpc` messages, each a type and its fields. `{project}` and `{region}` are filled in."""

    code: int
    status: str
    message: str
    details: Sequence[tuple[str, Mapping[str, object]]] = ()


def _info(reason: str, metadata: Mapping[str, str]) -> tuple[str, Mapping[str, object]]:
    return "ErrorInfo", {"reason": reason, "domain": "googleapis.com", "metadata": metadata}


ANSWERS: Mapping[str, Refusal] = {
    # https://cloud.google.com/docs/authentication/troubleshoot-adc
    "service_disabled": Refusal(
        code=403,
        status="PERMISSION_DENIED",
        message="Vertex AI API has not been used in project {project} before or it is disabled. Enable it by visiting "
        "https://console.developers.google.com/apis/api/aiplatform.googleapis.com/overview?project={project} then "
        "retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and "
        "retry.",
        details=[_info("SERVICE_DISABLED", _CONSUMER)],
    ),
    # https://github.com/GoogleCloudPlatform/training-data-analyst/issues/1811
    "consumer_invalid": Refusal(
        code=403,
        status="PERMISSION_DENIED",
        message="Permission denied on resource project {project}.",
        details=[_info("CONSUMER_INVALID", _CONSUMER)],
    ),
    # https://github.com/cloudquery/cloudquery/issues/1062
    "vpc_service_controls": Refusal(
        code=403,
        status="PERMISSION_DENIED",
        message=f"Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: {_UID}",
        details=[
            ("PreconditionFailure", {"violations": [{"type": "VPC_SERVICE_CONTROLS", "description": _UID}]}),
            _info("SECURITY_POLICY_VIOLATED", {**_CONSUMER, "uid": _UID}),
        ],
    ),
    # https://github.com/GoogleCloudPlatform/training-data-analyst/pull/2787
    "organization_policy": Refusal(
        code=400,
        status="FAILED_PRECONDITION",
        message="The request has violated one or more Org Policies",
        details=[
            (
                "PreconditionFailure",
                {
                    "violations": [
                        {
                            "description": "The project failed the org policy enforcement check for "
                            "constraints/gcp.resourceLocations"
                        }
                    ]
                },
            )
        ],
    ),
    # https://cloud.google.com/vertex-ai/docs/training/neural-architecture-search/environment-setup
    "image_denied": Refusal(
        code=400,
        status="FAILED_PRECONDITION",
        message=f"Vertex AI Service Agent service-{NUMBER}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com does not have "
        "permission to access Artifact Registry repository projects/{project}/locations/{region}/repositories/trainmaster.",
    ),
}
"""By the name that an injection's `answer` gives."""


def answer_named(name: str, path: str) -> JSONResponse:
    """The refusal of a request for this path."""
    refusal, place = ANSWERS[name], _PLACE.search(path)
    project, region = place.groups() if place else ("PROJECT", "REGION")

    def filled(value: object) -> object:
        match value:
            case str():
                return value.replace("{project}", project).replace("{region}", region)
            case Mapping():
                return {key: filled(each) for key, each in value.items()}
            case list():
                return [filled(each) for each in value]
        return value

    details = [{"@type": _TYPE + kind, **fields} for kind, fields in refusal.details]
    return google_error(
        refusal.code,
        str(filled(refusal.message)),
        status=refusal.status,
        details=[each for each in map(filled, details) if isinstance(each, dict)],
    )
