"""The policy's teams: what each may use, and how a team is known."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests.core.shipped import ROOT
from trainmaster.orchestrator.core.policy.policy import Policy, policy_from
from trainmaster.orchestrator.core.policy.teams import (
    may_watch,
    policy_of,
    team_fault,
    team_of_drop,
    team_of_topic,
)

NAMES = {
    "project": "my-project",
    "region": "us-central1",
    "inbox_bucket": "inbox",
    "models_bucket": "my-project-models",
}
EVERYTHING: dict[str, Any] = yaml.safe_load(
    (ROOT / "schemas/examples/valid/policy.v1.everything.yaml").read_text()
)
SOURCE = "//pubsub.googleapis.com/projects/my-project/topics/"


def policy(**changes: Any) -> Policy:
    return policy_from({**EVERYTHING, **changes}, NAMES)


def test_a_team_has_its_own_folder_in_every_bucket_that_the_policy_names() -> None:
    own = policy_of(policy(), "speech")
    assert own.output_prefixes == own.model_prefixes == ("gs://my-project-models/speech",)
    assert own.package_prefixes == ("gs://my-project-data/speech/code",)
    assert own.script_prefixes == ("gs://my-project-data/speech/scripts",)
    assert own.service_accounts == ("tm-trainer-speech@my-project.iam.gserviceaccount.com",)
    assert own.images == policy().images


def test_a_team_may_use_other_images_and_share_prefixes() -> None:
    own = policy_of(policy(), "vision")
    assert own.images == ("*-docker.pkg.dev/my-project/vision/**",)
    assert own.script_prefixes == ("gs://my-project-data/vision/scripts", "gs://my-project-data/shared")
    assert may_watch(own, "gs://my-project-data/shared/*")
    assert not may_watch(own, "gs://my-project-data/shared*")
    assert not may_watch(policy_of(policy(), "speech"), "gs://my-project-data/shared/*")


def test_what_all_teams_share_stays_as_it_is() -> None:
    narrowed = policy_of(policy(), "speech")
    kept = {"machines", "networks", "admission", "env", "regions", "require_digest", "teams"}
    assert {name: getattr(narrowed, name) for name in kept} == {
        name: getattr(policy(), name) for name in kept
    }


@pytest.mark.parametrize(
    ("name", "team"),
    [
        ("requests/vision/a.yaml", "vision"),
        ("rules/vision/b/c.yaml", "vision"),
        ("requests/a.yaml", "-"),
        ("requests/vision.yaml", "-"),
        ("requests/Vision/a.yaml", "-"),
        ("requests//a.yaml", "-"),
        ("requests/-/a.yaml", "-"),
        ("requests/../vision/a.yaml", "-"),
        ("a.yaml", "-"),
    ],
)
def test_the_folder_of_a_dropped_file_says_which_team_it_is_of(name: str, team: str) -> None:
    assert team_of_drop(policy(), name) == team
    assert (team_fault(policy(), team, name) is None) == (team == "vision")


@pytest.mark.parametrize(
    ("source", "team"),
    [
        (f"{SOURCE}trainmaster-requests-vision", "vision"),
        (f"{SOURCE}trainmaster-requests", "-"),
        (f"{SOURCE}trainmaster-requests-vision/", "-"),
        ("trainmaster-requests-vision", "vision"),
        ("", "-"),
    ],
)
def test_the_topic_of_a_message_says_which_team_it_is_of(source: str, team: str) -> None:
    assert team_of_topic(policy(), source) == team


def test_without_teams_nothing_has_a_team() -> None:
    alone = replace(policy(), teams={})
    for of_policy in (alone, None):
        assert team_of_drop(of_policy, "requests/vision/a.yaml") is None
        assert team_of_topic(of_policy, f"{SOURCE}trainmaster-requests-vision") is None
        assert team_fault(of_policy, None, "requests/a.yaml") is None
    assert "no longer names teams" in str(team_fault(alone, "vision", "requests/vision/a.yaml"))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"teams": {"a": {"requests_topic": "one-topic"}, "b": {"requests_topic": "one-topic"}}},
            "$.teams.b.requests_topic: one-topic is there twice",
        ),
        (
            {"teams": {}, "admission": {"limits": [{"jobs": 1, "per": "team"}]}},
            "$.admission.limits[0].per: the policy's teams lack one",
        ),
    ],
)
def test_a_policy_whose_teams_are_ambiguous_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - its text is compared below
        policy(**changes)
    assert problem in str(refused.value)
