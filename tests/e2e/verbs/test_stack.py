"""`stack` and `context` show the stack that runs."""

import json
from pathlib import Path

import pytest

from tests.core.shipped import assert_valid
from tests.e2e.project import Project
from tests.e2e.verbs.conftest import Trainmaster
from trainstack.find import read_stack_env

pytestmark = pytest.mark.slow


def test_the_status_of_a_stack_is_its_variables_and_its_process(
    trainmaster: Trainmaster, stack: Project
) -> None:
    shown = trainmaster("stack", "status")
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith(f"# ready, process {stack.process.pid}\n")
    assert read_stack_env(shown.out) == stack.env


def test_the_stack_publishes_what_it_is_in_its_ledger(stack: Project) -> None:
    document = stack.document(stack.ledger, "deployment.json")
    assert_valid(document, "deployment.v1")
    assert document is not None
    assert document["project"] == stack.id
    assert document["buckets"] == {
        role: f"{stack.id}-{role}" for role in ("inbox", "ledger", "models", "champions", "data")
    }
    tokens = {path.read_text().strip() for path in (stack.state / "user").glob("access-token")}
    assert tokens
    assert not [token for token in tokens if token in json.dumps(document)]


def test_images_are_provided_to_the_stack_that_other_verbs_use_or_nowhere(
    trainmaster: Trainmaster, stack: Project, tmp_path: Path
) -> None:
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "Dockerfile").write_text('FROM scratch\nENTRYPOINT ["true"]\n')
    words = ("stack", "provide", "example/own=image")
    refused = trainmaster(*words, cwd=tmp_path)
    assert (refused.status, refused.out) == (2, "")
    assert (
        f"No stack has run on '.trainmaster'. For a stack that runs now: --state {stack.state}" in refused.err
    )
    assert not (tmp_path / ".trainmaster").exists()
    done = trainmaster(*words, cwd=tmp_path, TRAINMASTER_CONTEXT=f"local:{stack.state}")
    assert (done.status, done.err) == (0, "")
    assert "example/own" in (stack.state / "images.json").read_text()
    assert trainmaster(*words, "--state", str(tmp_path / "new"), cwd=tmp_path).status == 0
