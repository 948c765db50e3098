"""Rules of a team: what they may watch, and where their templates are."""

from dataclasses import replace

import pytest

from tests.core.retraining_cases import BUCKETS, IMAGE, RULE_REQUIREMENTS, faults
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.policy.policy import Team
from trainmaster.orchestrator.core.policy.teams import policy_of
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.reading import parse_rule, template_uri
from trainmaster.orchestrator.core.retraining.request_check import RuleRequirements
from trainmaster.orchestrator.core.retraining.rule import Rule


def requirements() -> RuleRequirements:
    """Those of the team `vision`."""
    requests = RULE_REQUIREMENTS.requests
    shipped = replace(present(requests.policy), teams={"vision": Team(), "speech": Team()})
    own = replace(requests, policy=policy_of(shipped, "vision"))
    return RuleRequirements(requests=own, buckets=BUCKETS)


def dropped(when: str, rest: str) -> Rule | Refused:
    return parse_rule(
        f"when: [{when}]\n{rest}\n".encode(),
        dropped_name="rules/vision/again.yaml",
        generation=1,
        requirements=requirements(),
        book=Book(),
        template=None,
    )


REQUEST = f"request: {{model_name: cassava, image: '{IMAGE}:latest', cluster: {{chief: {{machine: n1-standard-8}}}}}}"


def test_a_rule_of_a_team_writes_into_the_teams_folder() -> None:
    found = instance_of(Rule, dropped("{manual: {}}", REQUEST))
    assert (found.rule_id, found.team) == ("vision.again", "vision")
    assert found.writes_uri == "gs://models/vision/cassava/"


@pytest.mark.parametrize("objects", ["gs://data/vision/**", "gs://data/vision/day-*/x.csv"])
def test_a_rule_of_a_team_watches_the_data_of_the_team(objects: str) -> None:
    assert isinstance(dropped(f"{{new_data: {{objects: '{objects}'}}}}", REQUEST), Rule)


OTHER_DATA = (
    "gs://data/speech/**",
    "gs://data/**",
    "gs://data/vision*/**",
    "gs://data/*/x.csv",
    "gs://data/vision",
    "gs://models/speech/**",
)


@pytest.mark.parametrize("objects", OTHER_DATA)
def test_a_rule_of_a_team_cannot_watch_other_data(objects: str) -> None:
    fault = faults(dropped(f"{{new_data: {{objects: '{objects}'}}}}", REQUEST))["$.when[0].new_data.objects"]
    assert fault.problem == "rules of the team vision may watch only the team's own data"
    bucket = objects.removeprefix("gs://").split("/")[0]
    assert fault.allowed == f"gs://{bucket}/vision/…"


@pytest.mark.parametrize(
    "name", ["templates/speech/a.yaml", "templates/a.yaml", "templates/vision-2/a.yaml", "vision/a.yaml"]
)
def test_a_rule_of_a_team_cannot_use_the_template_of_another(name: str) -> None:
    uri = f"gs://{BUCKETS.inbox}/{name}"
    fault = faults(dropped("{manual: {}}", f"request_uri: {uri}"))["$.request_uri"]
    assert fault.allowed == f"gs://{BUCKETS.inbox}/templates/vision/…"
    own = f"gs://{BUCKETS.inbox}/templates/vision/a.yaml"
    for written, read in ((uri, None), (own, own)):
        content = f"request_uri: {written}".encode()
        assert template_uri(content, "rules/vision/a.yaml", requirements()) == read
