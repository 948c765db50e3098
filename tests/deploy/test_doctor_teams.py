"""`trainmaster doctor` checks the grants of a deployment's teams, and names a missing one."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.client.served import served_context
from trainmaster.cli.stack.product import read_topology
from trainmaster.deploy.doctor.access import account_findings
from trainmaster.deploy.doctor.deployment import ExaminedDeployment, deployment_of
from trainmaster.deploy.doctor.finding import FindingVerdict
from trainmaster.deploy.doctor.questions import Questions, condition_of
from trainmaster.deploy.doctor.repair import bind
from trainmaster.deploy.doctor.self_test import deployed_policy, secrets_of
from trainmaster.deploy.names import policy_keys
from trainstack.http import in_thread, serving
from trainstack.iam import Grants, application
from trainstack.iam.principals import Tokens
from trainstack.stack.access import grants_of
from trainstack.storage.server import Storage

PROJECT, REGION = "p-one", "us-central1"
DEPLOY = Path(__file__).resolve().parents[2] / "trainmaster" / "deploy"


@pytest.fixture(scope="module")
def deployment() -> ExaminedDeployment:
    return deployment_of(project=PROJECT, region=REGION, topology=DEPLOY / "topology.yaml")


def test_what_is_expected_for_teams_is_what_the_local_stack_grants_them(
    deployment: ExaminedDeployment,
) -> None:
    topology = read_topology(DEPLOY / "topology.yaml", project=PROJECT, region=REGION)
    grants = grants_of(topology, DEPLOY / "permissions.yaml", ["vision"])
    expected = list(deployment.expected_of_teams(["vision"]))
    assert {each.thing.kind for each in expected} == {"account", "bucket", "folder", "object", "project"}
    assert "gs://p-one-models/vision/" in {each.thing.name for each in expected}
    for each in expected:
        resource, folder = each.thing.resource, ""
        if each.thing.kind in ("folder", "object"):
            bucket, part = each.thing.parts
            resource, folder = f"projects/_/buckets/{bucket}", part if each.thing.kind == "folder" else ""
        bindings: Any = grants.policy(resource, folder, with_conditions=True)["bindings"]
        conditions = [
            (found.get("condition") or {}).get("expression", "")
            for found in bindings
            if found["role"] == each.role and each.member in found["members"]
        ]
        assert conditions == [condition_of(each.thing) if each.thing.kind == "object" else ""], each


def test_a_managed_folder_and_an_object_have_their_commands(deployment: ExaminedDeployment) -> None:
    things = {
        each.thing.kind: bind(deployment, each.thing, each.member, "roles/x.y")
        for each in deployment.expected_of_teams(["vision"])
        if "ledger" not in each.thing.name and "eval" not in each.member
    }
    member = "--member=serviceAccount:tm-trainer-vision@p-one.iam.gserviceaccount.com --role=roles/x.y"
    assert things["folder"] == (
        f"gcloud storage managed-folders add-iam-policy-binding gs://p-one-data/vision/ {member}"
    )
    assert things["object"] == (
        f"gcloud storage buckets add-iam-policy-binding gs://p-one-models {member} "
        "'--condition=title=only vision,expression=resource.name == '\"'\"'projects/_/buckets/p-one-models/objects/vision'\"'\"''"
    )


@pytest.mark.parametrize(
    ("taken", "verdict"),
    [(None, FindingVerdict.OK), ("*objectUser", FindingVerdict.FAILED), ("*markers", FindingVerdict.FAILED)],
)
def test_a_teams_account_is_checked_on_its_folders_and_its_marker(
    deployment: ExaminedDeployment, tmp_path: Path, taken: str | None, verdict: FindingVerdict
) -> None:
    """Over the API of the local stack: permissions of folders as the account, the marker by its conditional binding."""
    topology = read_topology(DEPLOY / "topology.yaml", project=PROJECT, region=REGION)
    grants = grants_of(topology, DEPLOY / "permissions.yaml", ["vision"])
    if taken is not None:
        grants.take({"grants": [{"member": "*tm-trainer-vision@*", "role": taken, "resource": "*"}]})
    tokens = Tokens()
    with in_thread(lambda: storage_and_iam(tmp_path, grants, tokens)) as (storage_url, iam_url):
        for bucket in topology.buckets.values():
            made = httpx.post(
                f"{storage_url}/storage/v1/b?project={PROJECT}", json={"name": bucket}, timeout=60
            )
            made.raise_for_status()
        with closing(Questions(project="p", iam=iam_url, storage=storage_url)) as questions:
            findings = account_findings(deployment, questions, deployment.expected_of_teams(["vision"]))
    (own,) = (each for each in findings if "tm-trainer-vision@" in each.check)
    assert own.verdict is verdict, str(own)
    if taken == "*objectUser":
        assert "missing on folder gs://p-one-models/vision/" in own.message
        assert own.repairs[0].startswith(
            "gcloud storage managed-folders add-iam-policy-binding gs://p-one-models/vision/"
        )
    if taken == "*markers":
        assert "trainmaster_markers is not bound on object gs://p-one-models/vision" in own.message
    assert all(each.verdict is FindingVerdict.OK for each in findings if each is not own)


def test_the_teams_are_those_of_the_deployed_policy(deployment: ExaminedDeployment, tmp_path: Path) -> None:
    with served_context(tmp_path) as served:
        ledger = served.clients.context.ledger_bucket

        def found() -> tuple[Mapping[str, Any], list[str]]:
            policy, findings = deployed_policy(served.clients.storage, ledger, deployment)
            return policy, [str(each) for each in findings]

        policy, (missing,) = found()
        assert (policy, "the ledger has no deployment.json" in missing) == ({}, True)
        assert f"trainmaster deploy --project {PROJECT} --region {REGION}" in missing
        served.write("ledger", "deployment.json", {"policy": {"teams": {"vision": {}, "speech": {}}}})
        assert found() == ({"teams": {"vision": {}, "speech": {}}}, [])
        served.clients.storage.bucket(ledger).blob("deployment.json").upload_from_string("[]")
        assert "is damaged" in found()[1][0]


def test_the_secret_of_each_receiver_of_notices_is_a_grant_with_its_repair(
    deployment: ExaminedDeployment,
) -> None:
    notify = [
        {"name": "a", "slack": {"secret": "s"}},
        {"name": "b", "github": {"repository": "o/n", "secret": "s"}},
        {"name": "c", "email": {"to": ["a@example.com"]}},
    ]
    assert secrets_of({"notify": notify}) == ("s",)
    assert secrets_of({"notify": "of another version"}) == secrets_of({}) == ()
    examined = replace(deployment, secrets=("s",))
    grants = examined.expected_grants(project_number="1", subscriptions=())
    (grant,) = [each for each in grants if each.thing.kind == "secret"]
    assert bind(examined, grant.thing, grant.member, grant.role) == (
        "gcloud secrets add-iam-policy-binding s --project p-one "
        "--member=serviceAccount:tm-on-notice-out@p-one.iam.gserviceaccount.com --role=roles/secretmanager.secretAccessor"
    )


@contextlib.asynccontextmanager
async def storage_and_iam(folder: Path, grants: Grants, tokens: Tokens) -> AsyncIterator[tuple[str, str]]:
    storage = Storage(dir=folder, grants=grants, tokens=tokens)
    async with serving(storage) as storage_url, serving(application(grants, tokens)) as iam_url:
        yield storage_url, iam_url


def test_what_only_some_policies_need_is_granted_and_expected_only_there(
    deployment: ExaminedDeployment,
) -> None:
    def roles(policy: Mapping[str, Any] | None) -> set[str]:
        expected = deployment.expected_grants(project_number="1", subscriptions=(), policy=policy)
        return {grant.role.rpartition("/")[2] for grant in expected}

    retained = {"retention": {"models": {"keep_last": 3}}, "experiments": ["**"]}
    console = {"console": {"people": {"user:ada@example.com": ["*"]}}}
    asked = {**retained, **console, "registry": {"mode": "champions"}}
    registry = {"trainmaster_versions", "trainmaster_aliases"}
    assert roles(None) - roles({}) == {
        "trainmaster_removals",
        "trainmaster_experiments",
        "trainmaster_views",
        *registry,
    }
    assert roles(None) - roles({"experiments": ["**"], **console}) == {"trainmaster_removals", *registry}
    assert roles(None) - roles({**retained, **console, "registry": {"mode": False}}) == registry
    assert roles(asked) == roles(None)
    assert policy_keys(asked) == {*asked, "console.people"}
    assert policy_keys({"console": {"people": {}}}) == {"console"}
    assert not policy_keys({"experiments": []})
