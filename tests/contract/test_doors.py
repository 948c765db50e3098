"""The same text is judged alike whichever way it comes: dropped, published, given to the command or pasted into the console."""

import base64
import gzip
import json
from pathlib import Path

import pytest

from tests.contract.world import PROJECT, REGION, World
from trainmaster.client.context import context_in_cloud
from trainmaster.client.submission.edits import NO_EDITS
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.source import RequestSource, pasted_source
from trainmaster.client.submission.terms import terms_with_policy
from trainmaster.orchestrator.core.runs.states import RunState

TERMS = terms_with_policy(context_in_cloud(PROJECT, REGION))
BODY = f"""\
model_name: m
image: {REGION}-docker.pkg.dev/{PROJECT}/trainmaster/own:1
cluster: {{chief: {{machine: n1-standard-4}}}}
"""
POOLS = f"""\
displayName: m
workerPoolSpecs:
- &p {{machineSpec: {{machineType: n1-standard-4}}, replicaCount: 1, containerSpec: {{imageUri: {REGION}-docker.pkg.dev/{PROJECT}/a/b:1}}}}
- *p
"""
DATA = base64.b64encode(BODY.encode()).decode()
SOUND = {
    "aliases": POOLS,
    "a last document marker": f"{BODY}---\n",
    "labels of any language": f"{BODY}labels: {{größe: ''}}\n",
}
WARNED = {
    "a goal": f"{BODY}champion: {{metric: val_loss, goal: maximize}}\n",
    "templates": f"{BODY}args: ['--data=gs://$BUCKET/train', '--day={{{{ ds }}}}']\nenv: {{X: <your-bucket>, Y: '%HOME%'}}\n",
    "references": f"{BODY}env: {{LATE: $(ROOT)/train, ROOT: /gcs/b}}\n",
    "an apostrophe": f"{BODY}env: {{NOTE: the customer's choice}}\n",
}
REFUSED = {
    "a label": f"{BODY}labels: {{branch: feature/x}}\n",
    "an alias bomb": "a: &a [x, x]\n"
    + "".join(f"{n}: &{n} [{', '.join(['*' + p] * 9)}]\n" for p, n in ("ab", "bc", "cd", "de", "ef")),
    "merged keys": f"{BODY}env: {{<<: {{A: b}}}}\n",
    "a push body": json.dumps({"message": {"data": DATA}, "subscription": "projects/p/subscriptions/s"}),
    "a list": f"[{json.dumps({'model_name': 'm'})}]",
}


def judged(world: World, run_id: str) -> tuple[bool, list[str]]:
    record = world.record(run_id)
    return record.state is not RunState.REJECTED, list(record.problems)


def examined(source: RequestSource) -> tuple[bool, list[str]]:
    found: Examination = examination_of(source, TERMS, NO_EDITS)
    return found.faults == (), [str(fault) for fault in (*found.faults, *found.warnings)]


def judged_everywhere(text: str) -> tuple[bool, list[str]]:
    """Whether it is accepted, and its warnings or faults, which are the same at every door."""
    world, content = World(TERMS.rules), text.encode()
    dropped = world.drop_and_launch(content, "requests/m.yaml")
    message = world.published({"data": base64.b64encode(content).decode(), "messageId": "1"})
    world.launch(message)
    verdicts = [
        judged(world, dropped.run_id),
        judged(world, message.run_id),
        examined(RequestSource(file="m.yaml", content=content, folder=Path())),
        examined(pasted_source(text)),
    ]
    assert verdicts == [verdicts[0]] * len(verdicts)
    return verdicts[0]


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_what_is_sound_is_accepted_without_a_word(text: str) -> None:
    assert judged_everywhere(text) == (True, [])


@pytest.mark.parametrize("text", WARNED.values(), ids=WARNED)
def test_what_is_doubtful_is_accepted_with_the_same_warnings(text: str) -> None:
    accepted, warnings = judged_everywhere(text)
    assert accepted
    assert warnings


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_is_faulty_is_refused_with_the_same_faults(text: str) -> None:
    accepted, faults = judged_everywhere(text)
    assert not accepted
    assert faults


def test_bytes_that_are_no_text_are_named_alike() -> None:
    world, content = World(TERMS.rules), gzip.compress(BODY.encode(), mtime=0)
    dropped = world.drop_and_launch(content, "requests/m.yaml")
    by_command = examined(RequestSource(file="m.yaml", content=content, folder=Path()))
    assert judged(world, dropped.run_id) == by_command
    assert by_command[1][0].startswith("$: this is gzip, not the request itself; ")
