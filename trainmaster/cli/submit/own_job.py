"""The job of a request as its user would submit it without Trainmaster: no part of a run, in Google's own forms."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from trainmaster.client.context import Context
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import MODEL_LABEL, RUN_LABEL
from trainmaster.orchestrator.core.requests.placeholders import MODEL_URI, RUN_ID, find_names
from trainmaster.orchestrator.core.requests.reading import dialect_of
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.submission import Submission, Target, submission_of

_COMMANDS: Mapping[JobKind, str] = {JobKind.CUSTOM: "custom-jobs", JobKind.TUNING: "hp-tuning-jobs"}
_SPEC_KEYS: Mapping[JobKind, str] = {JobKind.CUSTOM: "jobSpec", JobKind.TUNING: "trialJobSpec"}


class Form(StrEnum):
    """The body of the API's create call, or the file for gcloud's --config."""

    API = "api"
    GCLOUD = "gcloud"


def region_of(document: object) -> str | None:
    """The region that an unchecked request in any dialect asks for; None if it asks for that of its deployment."""
    if not isinstance(document, dict) or document.get("region") == "${region}":
        return None
    return dialect_of(document).in_own(document, None).region


def own_job(request: Request, context: Context) -> Submission:
    """The job in the context's project, without the labels and the directory of a run."""
    spec, region = request.spec, str(request.document["region"])
    target = Target(project=context.project, region=region, models_bucket=context.models_bucket)
    submission = submission_of(spec.model_name, spec, target)
    key = _SPEC_KEYS[submission.kind]
    job_spec: Any = submission.body[key]  # Any: a JSON document
    prefix = spec.output_prefix_uri or f"gs://{target.models_bucket}/{spec.model_name}"
    job_spec = {**job_spec, "baseOutputDirectory": {"outputUriPrefix": prefix.rstrip("/")}}
    labels: Any = submission.body["labels"]
    kept = {name: value for name, value in labels.items() if name not in (RUN_LABEL, MODEL_LABEL)}
    body = {**submission.body, key: job_spec, "labels": kept}
    return replace(submission, body={name: value for name, value in body.items() if value != {}})


def in_form(job: Submission, form: Form) -> Mapping[str, object]:
    """The document in this form: for a custom job gcloud takes only the spec, and the rest as flags."""
    if form is Form.GCLOUD and job.kind is JobKind.CUSTOM:
        spec: Any = job.body[_SPEC_KEYS[job.kind]]
        return dict(spec)
    return job.body


def notes_on(job: Submission, form: Form, request: Request) -> Iterator[str]:
    """What the job is, how gcloud submits it, and what the request has that a plain job lacks."""
    yield f"{job.kind}, for {job.parent}"
    command = _gcloud_command(job)
    yield (
        f"submit it with: {command}"
        if form is Form.GCLOUD
        else f"for gcloud, print it with --for gcloud > vertex.yaml, then: {command}"
    )
    model, pools = request.spec.model_name, request.spec.cluster.pools
    words = [word for pool in pools if pool is not None for word in pool.program.args]
    if any(RUN_ID in find_names(word) for word in words):
        yield f"warning: the job does not belong to a run, so ${{run_id}} in args became {model}"
    if MODEL_URI in request.document:
        yield "warning: model_uri is not part of a job: only Trainmaster uses it"


def _gcloud_command(job: Submission) -> str:
    """The command that submits what is saved as vertex.yaml."""
    _, project, _, region = job.parent.split("/")
    words = ["gcloud", "ai", _COMMANDS[job.kind], "create", f"--project={project}", f"--region={region}"]
    words += [f"--display-name={job.body['displayName']}", "--config=vertex.yaml"]
    if job.kind is JobKind.CUSTOM:
        labels: Any = job.body.get("labels", {})
        encryption: Any = job.body.get("encryptionSpec", {})
        words += [f"--labels={','.join(f'{key}={value}' for key, value in labels.items())}"] if labels else []
        words += [f"--kms-key={key}" for key in encryption.values()]
    return shlex.join(words)
