"""Deployments with different names in one project share nothing that one of them could take from another."""

import json
import re
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.deploy.cloud import PROJECT as CLOUD_PROJECT
from tests.deploy.cloud import REGION as CLOUD_REGION
from tests.deploy.cloud import Cloud, managed, terraform_said
from tests.deploy.hcl import TERRAFORM
from tests.deploy.plan import DATA_BUCKETS, NUMBER, PROJECT, REGION, TERRAFORM_BINARY, plan
from trainmaster.deploy.existing import Existing, ExistingBucket, ExistingRole
from trainmaster.deploy.names import Names, names_of
from trainmaster.deploy.preflight import conclusions_from
from trainmaster.deploy.up import REFUSED
from trainmaster.orchestrator.core.deployment_names import account_email, is_deployment_name

TEAMS = ("vision", "recommendations-eu", "recommendations-us")
SHARED = {("topic", "gcr")}
"""What Artifact Registry dictates. Everything else has a separate name."""
of_deployments = st.from_regex("([a-z][a-z0-9]{0,5})?", fullmatch=True).filter(lambda name: not name or is_deployment_name(name))  # fmt: skip


def names_in(planned: dict[str, Any]) -> set[tuple[str, str]]:
    """What Terraform would create, by kind and name."""
    return {
        *(("bucket", name) for name in (*planned["buckets"].values(), planned["builds_bucket"])),
        *(("topic", name) for name in planned["topics"].values()),
        *(("subscription", name) for name in planned["subscriptions"]),
        *(("log sink", name) for name in planned["sinks"]),
        *(("log metric", f"{planned['metric_folder']}{name}") for name in planned["metrics"]),
        *(("Cloud Run service", each["name"]) for each in planned["functions"].values()),
        *(("Eventarc trigger", each["name"]) for each in planned["triggers"].values()),
        *(("schedule", name) for name in planned["schedules"]),
        ("repository", planned["repository"]),
        *(("service account", f"{each['id']}@{PROJECT}.iam.gserviceaccount.com") for each in planned["accounts"].values()),
        *(("role", name) for name in planned["custom_roles"]),
        ("dashboard", planned["title"]),
    }  # fmt: skip


def known_names(names: Names) -> set[tuple[str, str]]:
    """The same for the checks before a deployment."""
    taken = {(kind, name) for kind, found in names.taken.items() for name in found}
    return {*taken, *(("bucket", each) for each in names.buckets.values()), *(("role", each) for each in names.roles)}  # fmt: skip


@pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")
@pytest.mark.parametrize("name", ["", "stage", "abcdef"])
def test_the_checks_know_every_name_that_terraform_gives(name: str) -> None:
    names, planned = names_of(PROJECT, REGION, name), plan(deployment=name)
    assert known_names(names) | {("dashboard", names.title)} == names_in(planned)


@pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")
def test_terraform_names_nothing_of_one_deployment_as_of_another() -> None:
    plans = [plan(), *(plan(*TEAMS, deployment=name) for name in ("stage", "abcdef", "ops", "a"))]
    for one, other in combinations(plans, 2):
        in_both = names_in(one) & names_in(other)
        # The teams' topics are those of the policy, which is not the same in two deployments.
        own_topics = {("topic", f"trainmaster-requests-{team}") for team in TEAMS}
        assert in_both - own_topics == SHARED
        # No query or filter of one counts what is the other's.
        assert one["printed"] != other["printed"]
        assert {each["query"] for each in one["alerts"].values()} & {each["query"] for each in other["alerts"].values()} == set()  # fmt: skip


@pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")
def test_terraform_gives_accounts_the_emails_that_the_functions_use() -> None:
    for name in ("", "stage", "abcdef"):
        prefix = name and f"{name}-"
        for key, each in plan(*TEAMS, deployment=name)["accounts"].items():
            assert account_email(key, PROJECT, prefix) == f"{each['id']}@{PROJECT}.iam.gserviceaccount.com"


@settings(max_examples=30, deadline=None)
@given(st.lists(of_deployments, min_size=2, max_size=2, unique=True))
def test_no_two_names_have_a_name_in_common(names: list[str]) -> None:
    one, other = (names_of(PROJECT, REGION, name) for name in names)
    assert known_names(one) & known_names(other) == SHARED
    assert one.state_bucket != other.state_bucket
    assert one.state_bucket not in other.buckets.values()


@settings(deadline=None)
@given(of_deployments, st.from_regex(r"[a-z][a-z0-9-]{0,17}[a-z0-9]", fullmatch=True))
def test_an_account_of_any_team_has_an_id_that_is_allowed_and_its_own(name: str, team: str) -> None:
    prefix = name and f"{name}-"
    emails = [account_email(f"{kind}-{each}", PROJECT, prefix) for kind in ("trainer", "eval") for each in (team, f"{team}x")]  # fmt: skip
    ids = {email.partition("@")[0] for email in emails}
    assert len(ids) == len(emails)
    assert all(6 <= len(each) <= 30 and each[-1].isalnum() for each in ids)
    if not name and len(team) <= 19:
        assert f"tm-trainer-{team}" in ids


def existing_of(names: Names) -> Existing:
    """A project with everything of that deployment."""
    named: dict[str, dict[str, str]] = {kind: dict.fromkeys(found, f"{names.title}: x") for kind, found in names.taken.items()}  # fmt: skip
    buckets = {name: ExistingBucket(name=name, location=REGION, project_number=NUMBER) for name in names.buckets.values()}  # fmt: skip
    roles = {name: ExistingRole(title=title) for name, title in names.roles.items()}
    return Existing(pools={}, project_number=NUMBER, buckets=buckets, roles=roles, named=named, made={})


@pytest.mark.parametrize(("there", "new"), [("", "stage"), ("stage", ""), ("stage", "prod")])
def test_a_deployment_beside_another_takes_over_nothing_but_the_topic_of_image_pushes(there: str, new: str) -> None:  # fmt: skip
    found = conclusions_from(names_of(PROJECT, REGION, new), existing_of(names_of(PROJECT, REGION, there)))
    assert found.faults == ()
    assert (found.kept_buckets, found.kept_roles, found.kept_accounts) == ({}, (), ())
    assert found.foreign_topics == ("images",)


def of_the_other(text: str) -> list[str]:
    """Names of the deployment without a name in a text about that with the name `stage`."""
    names = names_of(CLOUD_PROJECT, CLOUD_REGION)
    words = {word.strip("'\",()").partition("gs://")[2] or word.strip("'\",()") for word in text.split()}
    known = {*(name for _, name in known_names(names)), names.state_bucket} - {"gcr"}
    return sorted(known & words)


@pytest.mark.slow
def test_a_deployment_with_a_name_has_its_own_state_and_working_folder(cloud: Cloud) -> None:
    ran = cloud.up("--name", "stage")
    assert ran.status == 0, ran.err
    (init,) = terraform_said(ran, "init")
    assert f"-backend-config=bucket={CLOUD_PROJECT}-stage-terraform" in init
    (applied,) = terraform_said(ran, "apply")
    assert "-var=deployment=stage " in applied
    assert of_the_other("\n".join(ran.changes)) == []
    work = cloud.folder / ".trainmaster" / "deploy" / f"{CLOUD_PROJECT}-{CLOUD_REGION}-stage"
    published = json.loads((work / "deployment.json").read_text())
    assert published["buckets"]["ledger"] == f"{CLOUD_PROJECT}-stage-ledger"
    assert published["topics"]["requests"] == "trainmaster-stage-requests"


@pytest.mark.slow
def test_removing_one_with_its_buckets_names_nothing_of_the_other(cloud: Cloud) -> None:
    for bucket in (*names_of(CLOUD_PROJECT, CLOUD_REGION).buckets.values(), f"{CLOUD_PROJECT}-terraform"):
        cloud.has_bucket(bucket)
    cloud.has_bucket(f"{CLOUD_PROJECT}-stage-terraform")
    state = {
        "version": 4,
        "resources": [managed("google_storage_bucket", name=f"{CLOUD_PROJECT}-stage-inbox")],
    }
    cloud.content["objects"][f"gs://{CLOUD_PROJECT}-stage-terraform/trainmaster/default.tfstate"] = (
        json.dumps(state)
    )
    ran = cloud.down("--name", "stage", "--delete-buckets")
    assert ran.status == 0, ran.err
    assert ran.changes[-1] == f"gcloud storage rm --recursive gs://{CLOUD_PROJECT}-stage-terraform"
    assert of_the_other("\n".join([*ran.changes, ran.out])) == []
    assert "the service accounts tm-stage-… with" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Stage", "staging", "1st", "a-b", "eval", "gcp"])
@pytest.mark.parametrize("verb", ["deploy", "undeploy"])
def test_a_name_that_none_can_have_is_refused_and_nothing_is_asked(
    verb: str, name: str, cloud: Cloud
) -> None:
    assert not is_deployment_name(name)
    ran = cloud.run(verb, "--name", name)
    assert (ran.status, ran.asked) == (REFUSED, ())
    assert f"{name!r} is not the name of a deployment: expected 1 to 6 lower-case letters" in ran.err


@pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")
def test_no_name_begins_another_accounts_or_like_what_google_reserves_and_terraform_says_the_same(tmp_path: Path) -> None:  # fmt: skip
    words = {name.partition("-")[0] for name in (*names_of(PROJECT, REGION).accounts, "ci")}
    names = [*words, "goog", "g00gle", "gcp1", "1a", "one", "evals", "gc", "stage"]
    (condition,) = re.findall(r"= (can\(regex.*var\.deployment.*)", (TERRAFORM / "variables.tf").read_text())
    asked = ", ".join(condition.replace("var.deployment", f'"{name}"') for name in names)
    said = subprocess.run(["terraform", "console"], input=f"jsonencode([{asked}])", cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True).stdout  # fmt: skip
    assert json.loads(json.loads(said)) == [name in names[-4:] for name in names]
    assert [name for name in names if is_deployment_name(name)] == names[-4:]


@pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")
def test_who_reads_the_data_bucket_reads_those_of_other_projects_and_no_team_does() -> None:
    planned = plan(*TEAMS)
    readers = {
        grant["account"]
        for grant in planned["grants"]["bucket"].values()
        if (grant["name"], grant["role"]) == ("data", "roles/storage.objectViewer")
    }
    assert {"trainer", "eval", "on-tick"} <= readers
    expected = {"role": "roles/storage.objectViewer", "bucket": DATA_BUCKETS[0]}
    found = planned["data_grants"].values()
    assert sorted(found, key=str) == sorted(({**expected, "account": each} for each in readers), key=str)
    assert not [each for each in found if "vision" in each["account"]]
