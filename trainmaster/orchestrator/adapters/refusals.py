"""The meaning of Vertex AI's error for a call: whose fault it is, and whether to try again.

`google.rpc.ErrorInfo` decides before any text. A refusal is the deployment's if its own accounts or project lack
something, and the request's if a resource that the request names is refused.
Sources: google/api/error_reason.proto for the reasons; for a text, the page beside its pattern.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from trainmaster.orchestrator.adapters.total_limit import LimitPassed
from trainmaster.orchestrator.core import errors
from trainmaster.orchestrator.core.admission.candidates import deployment_class
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.partial_import import IMPORTING

SERVICE = "Vertex AI"
API = "aiplatform.googleapis.com"
NO_QUOTA = 429  # nothing was created
UNAVAILABLE = 503
UNAUTHENTICATED = 401  # our credentials failed: not the request's fault, and they may recover
REQUEST_TIMEOUT = 408
UNKNOWN_FROM = 500  # the server may have done part of the work
_OF_RIGHTS = (400, 403, 412)
_NO_CAPACITY = re.compile(r"insufficient|exhausted|capacity|quota", re.IGNORECASE)
"""A 503 with these words is about machines. With any other the job may exist: the status guarantees nothing.

Source: UNAVAILABLE in https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
"""
_NOT_READY = re.compile(r"service agents? .*being provisioned", re.IGNORECASE)
"""In a project that uses Vertex AI for the first time, 400 FAILED_PRECONDITION has this text for some minutes.

Source: https://github.com/GoogleCloudPlatform/generative-ai/issues/1308
"""
_ACT_AS = re.compile(r"permission to act as service|iam\.serviceAccounts\.actAs", re.IGNORECASE)
"""A refusal, 400 or 403, because the submitting account may not act as the job's. A new grant takes minutes to apply.

Sources: https://github.com/googleapis/python-aiplatform/issues/1073 (400 INVALID_ARGUMENT) and
https://cloud.google.com/iam/docs/service-account-permissions (the permission)
"""
_EMAIL = re.compile(r"[a-z0-9][a-z0-9-]{0,62}@[a-z0-9.-]{1,253}[a-z0-9]")
# https://github.com/GoogleCloudPlatform/t5x-on-vertex-ai/issues/5
_DENIED = re.compile(r"Permission '([\w.]{1,100})' denied(?: on resource '//[\w.]{1,100}/([^']{1,300})')?")
_PROJECT = re.compile(r"projects/([^/]{1,63})(?:/locations/[^/]{1,63})?")
# https://cloud.google.com/vertex-ai/docs/training/neural-architecture-search/environment-setup
_REPOSITORY = re.compile(
    r"does not have permission to access Artifact Registry repository "
    r"projects/([^/\s]{1,63})/locations/([^/\s]{1,63})/repositories/([a-z0-9-]{1,63})"
)
# https://github.com/GoogleCloudPlatform/training-data-analyst/pull/2787
_CONSTRAINT = re.compile(r"\bconstraints/([\w.]{1,100})")
_ON_REQUESTS = ("gcp.restrictNonCmek", "gcp.restrictCmek")
"""Constraints that a request with another `encryption_key` meets."""
_ON_ALL = ("gcp.resourceLocations", "gcp.restrictServiceUsage")
_REASON_OF: Mapping[str, re.Pattern[str]] = {
    # https://cloud.google.com/docs/authentication/troubleshoot-adc
    "SERVICE_DISABLED": re.compile(r"API has not been used in project|or it is disabled"),
    # https://github.com/GoogleCloudPlatform/training-data-analyst/issues/1811
    "CONSUMER_INVALID": re.compile(r"Permission denied on resource project"),
    # https://cloud.google.com/vpc-service-controls/docs/troubleshooting
    "SECURITY_POLICY_VIOLATED": re.compile(r"prohibited by organization's policy"),
}
"""The reason of an answer without ErrorInfo, by its text."""
_GRANT = (
    "to each function that submits jobs, for example: gcloud projects add-iam-policy-binding {project} "
    "--member=serviceAccount:tm-on-tick@{project}.iam.gserviceaccount.com --role="
)
_ACTIVE = "check that the project exists and is active: gcloud projects describe {project}"
_ALLOWED = "see what the organisation allows: gcloud org-policies describe {constraint} --effective --project={project}"
_REPAIR_OF: Mapping[str, str] = {
    "SERVICE_DISABLED": "enable it, which takes some minutes: gcloud services enable {service} --project={project}",
    "BILLING_DISABLED": "link a billing account: gcloud billing projects link {project} --billing-account=ACCOUNT",
    "CONSUMER_INVALID": _ACTIVE,
    "CONSUMER_SUSPENDED": _ACTIVE,
    "USER_PROJECT_DENIED": f"grant the project's use {_GRANT}roles/serviceusage.serviceUsageConsumer",
    "SECURITY_POLICY_VIOLATED": "let the functions' accounts reach {service} through the perimeter; what it denied: "
    "gcloud logging read 'protoPayload.metadata.vpcServiceControlsUniqueId=\"{uid}\"' --project={project}",
    "RESOURCE_USAGE_RESTRICTION_VIOLATED": _ALLOWED.replace("{constraint}", "gcp.restrictServiceUsage"),
    "LOCATION_ORG_POLICY_VIOLATED": _ALLOWED.replace("{constraint}", "gcp.resourceLocations"),
}
"""Reasons for which the deployment's project is refused, each with what repairs it."""
_REST_PREFIX = re.compile(r"^(GET|POST) \S+: ")  # the client puts verb and URL before the service's message


def message_of_error(error: Exception) -> str:
    """The service's own message."""
    return _REST_PREFIX.sub("", str(getattr(error, "message", "") or error))


class Called(NamedTuple):
    """The collection of jobs that was called."""

    project: str
    region: str
    kind: JobKind
    deployment: str = ""

    @property
    def role(self) -> str:
        """The id of the custom role with the permissions on jobs: trainmaster/deploy/permissions.yaml."""
        return f"{self.deployment and f'{self.deployment}_'}trainmaster_jobs"


# Any: a GoogleAPICallError, over REST or gRPC; the library is imported late.
def submission_error(error: Any, called: Called) -> errors.TrainmasterError:
    """What the client's error means for a submission."""
    code, text = int(error.code or 0), message_of_error(error)
    if code == NO_QUOTA or (code == UNAVAILABLE and _NO_CAPACITY.search(text)) or _NOT_READY.search(text):
        return errors.SubmissionDeferred(code, text)
    refused = deployment_refused(error, called)
    if refused is not None:
        return refused
    if code == UNAUTHENTICATED:
        return errors.ServiceFailed(SERVICE, "submit the job", text)
    if code in range(400, UNKNOWN_FROM) and code != REQUEST_TIMEOUT:
        return errors.SubmissionRefused(code, text)
    return errors.SubmissionUnknown(text)


def deployment_refused(error: Any, called: Called) -> errors.TrainmasterError | None:
    """The error, if its cause is a right: `DeploymentRefused`, or `SubmissionRefused` with the grant it needs."""
    text = message_of_error(error)
    if error.code not in _OF_RIGHTS:
        return None
    if error.reason == "IAM_PERMISSION_DENIED" or _DENIED.search(text) or _ACT_AS.search(text):
        return _permission_denied(error, called)
    reason = error.reason or next((known for known, words in _REASON_OF.items() if words.search(text)), "")
    if reason in _REPAIR_OF:
        service = _metadata(error, "service") or API
        lacks = "" if service == API else service
        return _refusal_from(error, called, _REPAIR_OF[reason], lacks, service=service)
    repository = _REPOSITORY.search(text)
    if repository is not None:
        return _image_denied(error, called, repository)
    constraint = _CONSTRAINT.search(f"{text} {error.details}"[:10_000])
    if constraint is None or constraint[1].startswith(_ON_REQUESTS):
        return None
    lacks = "" if constraint[1] in _ON_ALL else constraint[1]
    return _refusal_from(error, called, _ALLOWED, lacks, constraint=constraint[1])


def _permission_denied(error: Any, called: Called) -> errors.TrainmasterError | None:
    """A permission on the deployment's project or on the job's account; None for one on a resource of the request."""
    text = message_of_error(error)
    found = _DENIED.search(text)
    permission = _metadata(error, "permission") or (found[1] if found else "")
    resource = _metadata(error, "resource") or (found[2] if found and found[2] else "")
    if permission == "iam.serviceAccounts.actAs" or _ACT_AS.search(text):
        email = _EMAIL.search(text) or _EMAIL.search(resource)
        return errors.ActAsDenied(error.code, text, email.group() if email else "")
    project = _PROJECT.fullmatch(resource)
    if permission.startswith(f"aiplatform.{called.kind}.") and (project or not resource):
        role = f"projects/{called.project}/roles/{called.role}"
        return _refusal_from(error, called, f"deploy again, or grant it {_GRANT}{role}", "")
    if project is None or project[1] != called.project:
        return None
    repair = "add it to the functions' role: gcloud iam roles update {role} --project={project} --add-permissions={permission}"
    return _refusal_from(error, called, repair, permission, permission=permission, role=called.role)


def _image_denied(error: Any, called: Called, repository: re.Match[str]) -> errors.TrainmasterError:
    """The image is the deployment's if its repository is in the deployment's project."""
    project, location, name = repository.groups()
    text = message_of_error(error)
    agent = _EMAIL.search(text)
    repair = (
        f"let it read the image: gcloud artifacts repositories add-iam-policy-binding {name} --location={location} --project={project} "
        f"--member=serviceAccount:{agent.group() if agent else 'AGENT'} --role=roles/artifactregistry.reader"
    )
    if project != called.project:
        return errors.SubmissionRefused(error.code, f"{text.rstrip(' .')}; {repair}")
    return errors.DeploymentRefused(error.code, text, repair, lacks=_class_of(f"{location}_{name}"))


def _refusal_from(
    error: Any, called: Called, repair: str, lacks: str, **values: str
) -> errors.DeploymentRefused:
    """`lacks` empty: every job of this kind is refused in this region."""
    known = {"project": called.project, "uid": _metadata(error, "uid"), **values}
    known = {key: _plain(value) for key, value in known.items()}  # they become part of a command
    lacks = _class_of(lacks) if lacks else deployment_class(called.region, called.kind)
    return errors.DeploymentRefused(error.code, message_of_error(error), repair.format(**known), lacks=lacks)


def _metadata(error: Any, key: str) -> str:
    metadata = error.metadata
    return str(metadata.get(key, "")) if isinstance(metadata, Mapping) else ""


def _class_of(lacks: str) -> str:
    return f"deployment_{_plain(lacks)}"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:150]


def api_errors() -> Any:  # Any: a module whose classes are named in `except`
    """google.api_core.exceptions, imported late."""
    with IMPORTING:
        from google.api_core import exceptions

    return exceptions


def is_transport_error(error: Exception) -> bool:
    """Whether the error is from a service, the network, credentials or a time limit, and not from this program."""
    with IMPORTING:
        import requests
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError

    kinds = (GoogleAPIError, GoogleAuthError, requests.RequestException, ConnectionError, TimeoutError)
    return isinstance(error, (*kinds, LimitPassed))


@contextmanager
def failures_of(service: str, operation: str) -> Iterator[None]:
    """Raise a library's error in the body as ours; a bug in this program stays as it is.

    Raises:
        ServiceFailed: the service did not do it.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, errors.TrainmasterError) or not is_transport_error(error):
            raise
        reason = f"{type(error).__name__}: {message_of_error(error)}"
        raise errors.ServiceFailed(service, operation, reason) from error
