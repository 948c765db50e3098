"""`trainmaster convert`: the Vertex AI form of a request in any dialect, printed and not submitted."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from trainmaster.cli.exits import Exit
from trainmaster.cli.faults import WARNING, fault_lines
from trainmaster.cli.verb import chosen_team, takes_team, talk
from trainmaster.cli.yaml_text import yaml_text
from trainmaster.client.context import context_in_cloud
from trainmaster.client.request_files import (
    STDIN,
    UnusableFile,
    is_json_file,
    read_input,
    read_policy,
    rules_for,
)
from trainmaster.orchestrator.core.documents.document import Document, parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, Refused
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import MODEL_LABEL, RUN_LABEL, model_name_from
from trainmaster.orchestrator.core.requests.placeholders import MODEL_URI, RUN_ID, find_names
from trainmaster.orchestrator.core.requests.reading import checked_request, dialect_of, with_places
from trainmaster.orchestrator.core.requests.request import Request, too_large
from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.requests.submission import Submission, Target, submission_of

PROJECT, REGION, MODELS_BUCKET = "my-project", "us-central1", "my-project-models"
_COMMANDS: Mapping[JobKind, str] = {JobKind.CUSTOM: "custom-jobs", JobKind.TUNING: "hp-tuning-jobs"}
_SPEC_KEYS: Mapping[JobKind, str] = {JobKind.CUSTOM: "jobSpec", JobKind.TUNING: "trialJobSpec"}


class Form(StrEnum):
    """The output's format: the body of the API's create call, or the file for gcloud's --config."""

    API = "api"
    GCLOUD = "gcloud"


def _model_name(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    if text is not None and model_name_from(text) != text:
        raise click.BadParameter(f"{text!r} does not name a model; {model_name_from(text)!r} would")
    return text


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="print JSON instead of YAML")
@click.option(
    "--for",
    "form",
    type=click.Choice([str(form) for form in Form]),
    default=str(Form.API),
    show_default=True,
    help="api: the body of the API's create call; gcloud: the file that gcloud's --config takes",
)
@click.option(
    "--name", callback=_model_name, help="the model's name where the request has none; default: FILE's"
)
@click.option("--policy", type=Path, metavar="FILE", help="also check the request against this policy")
@click.option("--project", default=PROJECT, show_default=True)
@click.option("--region", help=f"instead of the request's own; default: that, or {REGION}")
@click.option("--models-bucket", default=MODELS_BUCKET, show_default=True)
@takes_team
def convert(
    *,
    file: str,
    as_json: bool,
    form: str,
    name: str | None,
    policy: Path | None,
    project: str,
    region: str | None,
    models_bucket: str,
) -> int:
    """Print the Vertex AI form of FILE, a request in any dialect, YAML or JSON; - reads standard input.

    Nothing is submitted, and neither an environment nor the network is needed. Standard output has the job; standard
    error says what kind it is, how gcloud would submit it, and what to watch out for. The job is one of the user's own:
    its display name is the model's, and it has no label of a run.

    Exit status: 0 converted, 1 the request is faulty, 2 a file could not be read.
    """
    asked = Target(project=project, region=region or "", models_bucket=models_bucket)
    try:
        request, target = _checked(file, name, policy, asked)
    except UnusableFile as unusable:
        talk(str(unusable))
        return Exit.USAGE
    shown_as = "standard input" if file == STDIN else file
    if isinstance(request, Refused):
        faults = _of_local_script(request.faults, file)
        _print(*fault_lines(faults, shown_as))
        return Exit.FINDING
    submission = converted(request.spec, target)
    _print(*_summary(submission, target, Form(form)))
    _print(*fault_lines(request.warnings, shown_as, WARNING))
    _print(*_left_out(request))
    if policy is None:
        talk("not checked: what the deployment's policy allows; --policy FILE checks it")
    document = written(submission, Form(form))
    sys.stdout.write(
        json.dumps(document, indent=2, ensure_ascii=False) + "\n" if as_json else yaml_text(document)
    )
    return 0


def _of_local_script(faults: Sequence[Fault], file: str) -> Iterator[Fault]:
    """The faults; of a script that was not uploaded, one that says how to see its job. Its image is not known before."""
    script = next((fault for fault in faults if fault.path == "$.script.archive" and not fault.found), None)
    has_script_fault = any(fault.path.startswith("$.script") for fault in faults)
    for fault in faults:
        if fault is script:
            plan = f"trainmaster plan {shlex.quote(file)}"
            problem = "the script is only on this machine, so there is no job of it to print yet"
            yield replace(
                fault, problem=problem, repair=f"see the job that `trainmaster submit` would start: {plan}"
            )
        elif not has_script_fault or fault.path != "$.image" or fault.found:
            yield fault


def _checked(
    file: str, name: str | None, policy: Path | None, asked: Target
) -> tuple[Request | Refused, Target]:
    """The request of the file, and where it would go: the region asked for, or else the request's own.

    Raises:
        UnusableFile: the file or the policy cannot be read.
    """
    content = read_input(file, sys.stdin.buffer)
    read = parse_document(content, as_json=is_json_file(file, content))
    moved = _moved(read, asked.region) if asked.region else read
    target = replace(asked, region=asked.region or _find_region(moved) or REGION)
    where = replace(
        context_in_cloud(target.project, target.region),
        models_bucket=target.models_bucket,
        team=chosen_team(),
    )
    rules = rules_for(where, read_policy(policy, where) if policy else None)
    name = name or (None if file == STDIN else model_name_from(Path(file).stem))
    request = too_large(len(content)) or checked_request(moved, rules, name=name)
    return with_places(request, read, rules.policy), target


def converted(spec: JobSpec, target: Target) -> Submission:
    """The job as a user would submit it without Trainmaster: without the labels and the directory of a run."""
    submission = submission_of(spec.model_name, spec, target)
    key = _SPEC_KEYS[submission.kind]
    job_spec: Any = submission.body[key]  # Any: a JSON document
    prefix = spec.output_prefix_uri or f"gs://{target.models_bucket}/{spec.model_name}"
    job_spec = {**job_spec, "baseOutputDirectory": {"outputUriPrefix": prefix.rstrip("/")}}
    labels: Any = submission.body["labels"]
    own = {name: value for name, value in labels.items() if name not in (RUN_LABEL, MODEL_LABEL)}
    body = {**submission.body, key: job_spec, "labels": own}
    return Submission(
        run_id=submission.run_id,
        parent=submission.parent,
        kind=submission.kind,
        body={name: value for name, value in body.items() if value != {}},
    )


def written(submission: Submission, form: Form) -> Mapping[str, object]:
    """The document in the given form: for a custom job gcloud takes only the spec, and the rest as flags."""
    if form is Form.GCLOUD and submission.kind is JobKind.CUSTOM:
        spec: Any = submission.body[_SPEC_KEYS[submission.kind]]
        return dict(spec)
    return submission.body


def gcloud_command(submission: Submission, target: Target) -> str:
    """The command that submits what `--for gcloud` printed, saved as vertex.yaml."""
    words = ["gcloud", "ai", _COMMANDS[submission.kind], "create", f"--project={target.project}"]
    words += [f"--region={target.region}", f"--display-name={submission.body['displayName']}"]
    words.append("--config=vertex.yaml")
    if submission.kind is JobKind.CUSTOM:
        labels: Any = submission.body.get("labels", {})
        encryption: Any = submission.body.get("encryptionSpec", {})
        words += [f"--labels={','.join(f'{key}={value}' for key, value in labels.items())}"] if labels else []
        words += [f"--kms-key={key}" for key in encryption.values()]
    return shlex.join(words)


def _moved(read: Document, region: str) -> Document:
    """The document with its region replaced, if it has one: legacy jobs and our own dialect have."""
    value = read.value if isinstance(read.value, dict) else {}
    for key in ("trainingInput", "training_input"):
        spec = value.get(key)
        if isinstance(spec, dict) and "region" in spec:
            return replace(read, value={**value, key: {**spec, "region": region}})
    return replace(read, value={**value, "region": region}) if "region" in value else read


def _find_region(read: Document) -> str | None:
    if not isinstance(read.value, dict):
        return None
    if read.value.get("region") == "${region}":  # wherever the deployment is
        return None
    return dialect_of(read.value).in_own(read.value, None).region


def _summary(submission: Submission, target: Target, form: Form) -> list[str]:
    command = gcloud_command(submission, target)
    return [
        f"{submission.kind}, for {submission.parent}",
        f"submit it with: {command}"
        if form is Form.GCLOUD
        else f"for gcloud, print it with --for gcloud > vertex.yaml, then: {command}",
    ]


def _left_out(request: Request) -> Iterator[str]:
    """Warnings about the request's run id and model URI, which a plain job does not have."""
    spec = request.spec
    words = [word for pool in spec.cluster.pools if pool is not None for word in pool.program.args]
    if any(RUN_ID in find_names(word) for word in words):
        yield f"warning: the job does not belong to a run, so ${{run_id}} in args became {spec.model_name}"
    if MODEL_URI in request.document:
        yield "warning: model_uri is not part of a job: only Trainmaster uses it"


def _print(*lines: str) -> None:
    for line in lines:
        talk(line)
