"""The screen of `trainmaster plan`."""

from collections.abc import Mapping
from typing import Any

import click

from trainmaster.cli.table import print_facts
from trainmaster.cli.yaml_text import yaml_text
from trainmaster.client.plan.facts import plan_facts
from trainmaster.client.plan.plan import Plan
from trainmaster.orchestrator.core.requests.script import RUNNER

RUNNER_AT = 2
"""The place of RUNNER in a script's command: trainmaster/orchestrator/core/requests/script.py."""


def print_plan(plan: Plan) -> None:
    """What would happen first, then the request and each job as YAML."""
    print_facts(plan_facts(plan))
    _print_yaml("The request, as the service reads it", plan.request)
    for job in plan.jobs:
        what = "The job" if job.number == 0 else f"Fallback {job.number}"
        _print_yaml(
            f"{what}, as Vertex AI gets it: POST {job.parent}/{job.kind}", with_short_commands(job.body)
        )


def with_short_commands(document: Any) -> Any:
    """The document with one line in place of the program that fetches and starts a packed script."""
    if isinstance(document, Mapping):
        return {key: with_short_commands(value) for key, value in document.items()}
    if not isinstance(document, list | tuple):
        return document
    if len(document) > RUNNER_AT + 2 and document[RUNNER_AT] == RUNNER:
        archive, file = document[RUNNER_AT + 1 : RUNNER_AT + 3]
        line = f"# runs {file} of {archive}; all of it: -o yaml"
        return [*document[:RUNNER_AT], line, *document[RUNNER_AT + 1 :]]
    return [with_short_commands(each) for each in document]


def _print_yaml(title: str, document: object) -> None:
    click.echo(f"\n{click.style(title, bold=True)}")
    click.echo(yaml_text(document), nl=False)
