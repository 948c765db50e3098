"""The requests and rules to copy are sound, and the trainer takes their arguments."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import Template

import pytest
import yaml

from tests.core.retraining_cases import RULE_REQUIREMENTS
from trainer.command_line.flags import flags_from
from trainmaster.orchestrator.core.names import Buckets
from trainmaster.orchestrator.core.requests.reading import parse_request
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.reading import parse_rule
from trainmaster.orchestrator.core.retraining.rule import Rule

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
DEMO = {"project": "my-project", "region": "us-central1", "data_dir": "gs://my-project-datasets/tfds"}
BUCKETS = Buckets(
    inbox="my-project-inbox",
    ledger="my-project-ledger",
    models="my-project-models",
    champions="my-project-champions",
)


def tuned(request: Request) -> list[str]:
    """The flags of a trial, each parameter at one of its values."""
    parameters = request.document.get("tuning", {}).get("parameters", {})
    return [
        f"--{name}={each['values'][0] if 'values' in each else each['max']}"
        for name, each in parameters.items()
    ]


def arguments_of(text: str) -> Sequence[str]:
    """The program's arguments in a sound request or rule."""
    document = yaml.safe_load(text)
    if "when" in document:
        rule = parse_rule(
            text.encode(),
            dropped_name="rules/example.yaml",
            generation=1,
            requirements=replace(RULE_REQUIREMENTS, buckets=BUCKETS),
            book=Book(),
            template=None,
        )
        assert isinstance(rule, Rule), rule
        arguments: list[str] = document["request"]["args"]
        return arguments
    request = parse_request(text.encode(), as_json=False, request_rules=RULE_REQUIREMENTS.requests)
    assert isinstance(request, Request), request
    return [*request.spec.cluster.chief.program.args, *tuned(request)]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_example_is_sound_and_has_flags_that_the_trainer_takes(path: Path) -> None:
    flags_from(arguments_of(Template(path.read_text()).safe_substitute(DEMO)))
