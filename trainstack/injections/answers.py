"""Vertex AI's own refusals of a project or an account, word for word, for injections that name one.

Sources: the texts and details that users quoted, linked beside each; reasons: google/api/error_reason.proto.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from starlette.responses import JSONResponse

from trainstack.json_bodies import google_error

_API = "aiplatform.googleapis.com"
_PLACE = re.compile(r"/projects/([^/]+)/locations/([^/]+)")
_UID = "eYhDkfYCu-dOCjuj8X4Am9"
NUMBER = "123456789012"


class Refusal(NamedTuple):
    """`details` are `google.rpc` messages. `{project}` and `{region}` are filled in."""

    code: int
    status: str
    message: str
    details: tuple[Mapping[str, object], ...] = ()


def _info(reason: str, **metadata: str) -> Mapping[str, object]:
    metadata = {"consumer": "projects/{project}", "service": _API, **metadata}
    kind = "type.googleapis.com/google.rpc.ErrorInfo"
    return {"@type": kind, "reason": reason, "domain": "googleapis.com", "metadata": metadata}


def _violation(**violation: str) -> Mapping[str, object]:
    return {"@type": "type.googleapis.com/google.rpc.PreconditionFailure", "violations": [violation]}


ANSWERS: Mapping[str, Refusal] = {
    # https://cloud.google.com/docs/authentication/troubleshoot-adc
    "service_disabled": Refusal(
        403,
        "PERMISSION_DENIED",
        "Vertex AI API has not been used in project {project} before or it is disabled. Enable it by visiting "
        "https://console.developers.google.com/apis/api/aiplatform.googleapis.com/overview?project={project} then "
        "retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and "
        "retry.",
        (_info("SERVICE_DISABLED"),),
    ),
    # https://github.com/GoogleCloudPlatform/training-data-analyst/issues/1811
    "consumer_invalid": Refusal(
        403,
        "PERMISSION_DENIED",
        "Permission denied on resource project {project}.",
        (_info("CONSUMER_INVALID"),),
    ),
    # https://github.com/cloudquery/cloudquery/issues/1062
    "vpc_service_controls": Refusal(
        403,
        "PERMISSION_DENIED",
        f"Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: {_UID}",
        (
            _violation(type="VPC_SERVICE_CONTROLS", description=_UID),
            _info("SECURITY_POLICY_VIOLATED", uid=_UID),
        ),
    ),
    # https://github.com/GoogleCloudPlatform/training-data-analyst/pull/2787
    "organization_policy": Refusal(
        400,
        "FAILED_PRECONDITION",
        "The request has violated one or more Org Policies",
        (
            _violation(
                description="The project failed the org policy enforcement check for constraints/gcp.resourceLocations"
            ),
        ),
    ),
    # https://cloud.google.com/vertex-ai/docs/training/neural-architecture-search/environment-setup
    "image_denied": Refusal(
        400,
        "FAILED_PRECONDITION",
        f"Vertex AI Service Agent service-{NUMBER}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com does not have "
        "permission to access Artifact Registry repository projects/{project}/locations/{region}/repositories/trainmaster.",
    ),
}
"""By the name that an injection's `answer` gives."""


def answer_named(name: str, path: str) -> JSONResponse:
    """The refusal of a request for this path."""
    place = _PLACE.search(path)
    project, region = place.groups() if place else ("PROJECT", "REGION")
    text = json.dumps(ANSWERS[name]).replace("{project}", project).replace("{region}", region)
    code, status, message, details = json.loads(text)
    return google_error(code, message, status=status, details=details)
