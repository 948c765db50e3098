"""The job that scores a model and the champion on the same data: `champion.evaluate` of a request.

It is a request of its own, as far as checks and prices are concerned. Its program gets what it scores in variables and
as arguments, and writes metrics.json to the output: `{"challenger": {METRIC: NUMBER, …}, "champion": {…}}`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, json_path
from trainmaster.orchestrator.core.documents.values import list_at, mapping_at
from trainmaster.orchestrator.core.names import EVALUATIONS_PREFIX, STEP_LABEL, in_team, object_uri
from trainmaster.orchestrator.core.policy.policy import EvaluationPolicy, Policy
from trainmaster.orchestrator.core.policy.registry import Registry, RegistryMode
from trainmaster.orchestrator.core.requests.checks.policy import policy_faults
from trainmaster.orchestrator.core.requests.checks.programs import prebuilt_faults, program_faults
from trainmaster.orchestrator.core.requests.checks.secrets import secret_faults
from trainmaster.orchestrator.core.requests.draft import SCRIPT, Draft
from trainmaster.orchestrator.core.requests.placeholders import placeholder_faults
from trainmaster.orchestrator.core.requests.spec import JobSpec, spec_from
from trainmaster.orchestrator.core.requests.submission import Submission, Target, submission_of
from trainmaster.orchestrator.core.runs.end import CHALLENGER, CHAMPION, EVALUATION

EVALUATE = ("champion", "evaluate")
DATA, OUTPUT = "data", "output"
VARIABLES: Mapping[str, str] = {
    CHALLENGER: "TRAINMASTER_CHALLENGER_URI",
    CHAMPION: "TRAINMASTER_CHAMPION_URI",
    DATA: "TRAINMASTER_EVALUATION_DATA_URI",
    OUTPUT: "TRAINMASTER_EVALUATION_OUTPUT_URI",
}
"""What the program gets, by the name of its argument: `--challenger=URI`. Without a champion it gets neither for it."""
_OF_RUN = ("model_name", "labels", "encryption_key")


def evaluation_document(document: Mapping[str, object], policy: Policy | None) -> dict[str, Any] | None:
    """The evaluation as a request in our own dialect; None if the request asks for none.

    A script without an image runs in that of the request, or else in the policy's.
    """
    evaluate = mapping_at(document, *EVALUATE)
    if not evaluate:
        return None
    terms = policy.evaluation if policy is not None else EvaluationPolicy()
    image = evaluate.get("image") or document.get("image") or (policy.script_image if policy else None)
    return {
        **{key: document[key] for key in _OF_RUN if key in document},
        **({"image": image} if image else {}),
        **{key: evaluate[key] for key in (SCRIPT, "args") if key in evaluate},
        "cluster": {"chief": {"machine": terms.machine}},
        "scheduling": {"timeout_s": terms.timeout_s},
    }


def follow_up_specs(document: Mapping[str, object], policy: Policy | None) -> Iterator[JobSpec]:
    """The jobs that may follow a run: what scores its model, and what tries out a champion's, which costs the same."""
    asked = [mapping_at(document, "champion")]
    registry = policy.registry if policy is not None else Registry()
    if asked[0] and registry.smoke and registry.mode is not RegistryMode.OFF:
        asked.append({"evaluate": {"image": "of the run"}})
    for champion in asked:
        own = evaluation_document({**document, "champion": champion}, policy)
        if own is not None:
            yield spec_from(own)


def evaluation_faults(draft: Draft, today: date) -> Iterator[Fault]:
    """What the policy and the checks of programs say against the evaluation, at its places in the request."""
    document = evaluation_document(draft.document, draft.policy)
    if document is None:
        return
    own = replace(draft, document=document)
    given = mapping_at(draft.document, *EVALUATE)
    found = (*secret_faults(own), *placeholder_faults(own), *policy_faults(own), *program_faults(own))
    for fault in (*found, *prebuilt_faults(own, today)):
        key = fault.path.removeprefix("$.").partition(".")[0].partition("[")[0]
        if key == "cluster":
            yield replace(
                fault.moved(lambda _: json_path(EVALUATE)), repair="ask for another evaluation.machine"
            )
        elif key in given or (key == "image" and SCRIPT in given and not draft.document.get("image")):
            yield fault.moved(lambda path: f"{json_path(EVALUATE)}{path.removeprefix('$')}")


def evaluation_output_uri(bucket: str, team: str | None, model_name: str, run_id: str) -> str:
    """Where only the evaluation's account writes; no trailing slash."""
    return object_uri(bucket, f"{EVALUATIONS_PREFIX}{in_team(team, model_name)}/{run_id}")


def evaluation_submission(
    run_id: str, request: Mapping[str, Any], inputs: Mapping[str, str], output_uri: str, target: Target
) -> Submission:
    """The one submission of the evaluation, a request of `evaluation_document`, as the account of `target`."""
    given = {key: inputs[key] for key in (CHALLENGER, CHAMPION, DATA) if key in inputs} | {OUTPUT: output_uri}
    labelled = {
        **request,
        "labels": {**mapping_at(request, "labels"), STEP_LABEL: EVALUATION},
        "env": {VARIABLES[key]: uri for key, uri in given.items()},
        "args": [*(f"--{key}={uri}" for key, uri in given.items()), *list_at(request, "args")],
    }
    return follow_up_submission(run_id, EVALUATION, spec_from(labelled), output_uri, target)


def follow_up_submission(
    run_id: str, step: str, spec: JobSpec, output_uri: str, target: Target
) -> Submission:
    """The one submission of the step's job, as the account of `target`."""
    placed = replace(spec, output_prefix_uri=output_uri.rsplit("/", 2)[0])
    submission = submission_of(run_id, placed, target)
    return replace(submission, body={**submission.body, "displayName": f"{run_id}-{step}"})
