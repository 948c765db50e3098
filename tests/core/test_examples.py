"""The requests to copy are sound, and the trainer takes their arguments."""

import json
from pathlib import Path
from string import Template

import pytest

from orchestrator.core.documents import document_in
from orchestrator.core.launch.request import Request, request_in
from orchestrator.core.tuning import Tuning
from tests.core.standards import STANDARDS
from trainer.flags import flags_from

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DEMO = {"project": "my-project", "region": "us-central1", "data_dir": "gs://my-project-datasets/tfds"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_example_is_a_sound_request_of_flags_that_the_trainer_has(path: Path) -> None:
    text = Template(path.read_text()).safe_substitute(DEMO)
    document = document_in(text.encode(), as_json=False).value
    assert isinstance(document, dict)
    content = json.dumps(document.get("request", document)) if "when" in document else text
    request = request_in(content.encode(), as_json="when" in document, standards=STANDARDS)
    assert isinstance(request, Request), request
    work = request.spec.work
    tuned = [f"--{each.name}={each.values[0] if each.values else each.max}" for each in work.parameters] if isinstance(work, Tuning) else []  # fmt: skip
    flags_from([*request.spec.container.args, *tuned])
