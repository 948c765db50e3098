"""The Terraform configuration uses what the provider takes, names nothing twice, and says nothing but the plan."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.hcl import TERRAFORM, Block, bare, block, blocks, dependencies, loaded
from tests.judges.provider import DATA, faults_of, key_of
from tests.processes import run_to_end

ROOT = Path(__file__).resolve().parents[2]
OTHER_PROVIDERS = frozenset({"terraform_data", "time_sleep", "archive_file"})
MEMBERS = re.compile(r"_iam_member$")
REFERENCE = re.compile(r"(?<![\w.])(?:data\.)?(?:google|time|terraform|archive)_\w+\.\w+")


def google(kind: str) -> list[Block]:
    return [each for each in blocks() if each.kind == kind and each.type not in OTHER_PROVIDERS]


def test_the_schema_holds_every_type_that_is_used_and_no_other() -> None:
    used = {key_of(each) for each in (*google("resource"), *google("data"))}
    assert set(DATA["resources"]) == used, "add it to tests/judges/classes.py"


def test_the_provider_accepts_every_argument_and_misses_none() -> None:
    for each in [*google("resource"), *google("data")]:
        assert faults_of(each) == [], str(each)


def test_nothing_is_named_in_the_configuration_that_the_topology_names() -> None:
    """Names come through the plan alone, so that a changed topology changes the cloud and the local stack alike."""
    topology = yaml.safe_load(
        (ROOT / "trainmaster/deploy/topology.yaml").read_text().replace("${prefix}", "")
    )
    named = {
        *topology["topics"].values(),
        *topology["subscriptions"],
        *topology["sinks"],
        *topology["schedules"],
        *topology["functions"],
        *(function["entry_point"] for function in topology["functions"].values()),
        *(name for name in topology["environment"] if name.startswith("TRAINMASTER_")),
    }
    for path in TERRAFORM.glob("*.tf"):
        code = re.sub(r"#.*", "", path.read_text())
        code = re.sub(r"(?m)^\s*(description|error_message)\s*=.*$", "", code)
        assert {name for name in named if f'"{name}"' in code} == set(), path.name


def test_every_grant_is_made_from_the_table_but_some() -> None:
    """The writer of a sink is known only with the sink; keys and a console where some are given; jobs of CI are not accounts."""
    apart = {
        "google_pubsub_topic_iam_member.sink",
        "google_kms_crypto_key_iam_member.agent",
        "google_kms_crypto_key_iam_member.agent_of_jobs",
        "google_service_account_iam_member.ci",
        "google_cloud_run_v2_service_iam_member.iap",
        "google_iap_web_cloud_run_service_iam_member.people",
    }
    for each in blocks():
        if MEMBERS.search(each.type) and f"{each.type}.{each.name}" not in apart:
            assert each.body["role"] == "${each.value.role}", str(each)
            assert each.body["member"] == "${local.members[each.value.account]}", str(each)


def test_every_resource_that_is_referred_to_exists() -> None:
    """As `terraform validate` would say, which needs the provider."""
    existing = {f"{'data.' if each.kind == 'data' else ''}{each.type}.{each.name}" for each in blocks()}
    for file, content in loaded().items():
        assert set(REFERENCE.findall(str(content))) <= existing, file


def test_grants_are_added_and_never_replace_those_of_others() -> None:
    types = {each.type for each in blocks()}
    assert {each for each in types if each.endswith(("_iam_binding", "_iam_policy"))} == set()


def test_every_kind_of_grant_in_the_plan_becomes_a_resource() -> None:
    code = " ".join(path.read_text() for path in TERRAFORM.glob("*.tf"))
    kinds = re.search(r"for kind in \[([^\]]*)\]", (TERRAFORM / "plan/grants.tf").read_text())
    assert kinds is not None
    for kind in re.findall(r'"(\w+)"', kinds[1]):
        assert f"module.plan.grants.{kind}" in code


def test_the_sinks_writer_may_publish_on_the_sinks_topic() -> None:
    sink, grant = (
        block("google_logging_project_sink", "sink"),
        block("google_pubsub_topic_iam_member", "sink"),
    )
    assert sink["for_each"] == grant["for_each"] == "${module.plan.sinks}"
    assert sink["unique_writer_identity"] == "true" or sink["unique_writer_identity"] is True
    assert grant["member"] == "${google_logging_project_sink.sink[each.key].writer_identity}"
    assert grant["topic"] == "${local.topic_ids[each.value.topic_role]}"
    assert grant["topic"][2:-1] in sink["destination"]


def test_buckets_are_closed_to_the_public_and_to_object_acls() -> None:
    bucket = block("google_storage_bucket", "bucket")
    assert str(bucket["uniform_bucket_level_access"]).lower() == "true"
    assert bucket["public_access_prevention"] == '"enforced"'
    assert bucket["force_destroy"] == "${var.delete_buckets}"


def test_nothing_is_made_before_the_apis_that_were_just_enabled_answer() -> None:
    # A topic that others made is there only where Pub/Sub answers already.
    first = {"google_project_service.api", "data.google_project.this", "data.google_pubsub_topic.foreign"}
    for address, before in dependencies().items():
        if address not in first and address.removeprefix("data.").startswith("google_"):
            assert "time_sleep.apis" in before, address


def test_functions_are_built_and_triggers_made_once_what_they_need_is_in_force() -> None:
    granted = {
        "google_project_iam_member.project",
        "google_project_iam_member.agent",
        "google_storage_bucket_iam_member.bucket",
        "google_service_account_iam_member.account",
    }
    assert granted <= dependencies()["time_sleep.grants"]
    for address in ("google_cloudfunctions2_function.function", "google_eventarc_trigger.trigger"):
        assert "time_sleep.grants" in dependencies()[address]


def test_an_agent_that_comes_late_stops_nothing_else() -> None:
    """Monitoring's comes after the first channel; Vertex AI's for images is not Terraform's at all."""
    late = "google_pubsub_topic_iam_member.monitoring"
    before = dependencies()
    assert {"time_sleep.monitoring_agent", "google_monitoring_notification_channel.alerts"} <= before[late]
    assert [address for address in before if late in before[address]] == []
    assert (
        "google_monitoring_notification_channel.alerts" not in before["google_pubsub_topic_iam_member.topic"]
    )


def providers() -> dict[str, dict[str, Any]]:
    """The blocks `provider` of the root module, by name."""
    return {
        bare(name): body
        for each in loaded()["versions.tf"]["provider"]
        for name, body in each.items()
        if isinstance(body, dict)
    }


def test_every_call_counts_for_the_project_that_is_deployed_to() -> None:
    """gcloud's credentials belong to one of Google's projects."""
    assert set(providers()) == {"google", "google-beta"}
    for body in providers().values():
        assert body["user_project_override"] is True
        assert body["billing_project"] == body["project"] == "${var.project}"


def test_providers_have_the_exact_version_whose_schema_is_the_judge() -> None:
    (terraform,) = loaded()["versions.tf"]["terraform"]
    (required,) = terraform["required_providers"]
    versions = {name: bare(each["version"]) for name, each in required.items() if isinstance(each, dict)}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values()), versions
    assert versions["google"] == versions["google-beta"] == DATA["provider"]


def test_the_builds_bucket_is_the_one_that_cloud_build_writes_to() -> None:
    build = yaml.safe_load((ROOT / "cloudbuild.yaml").read_text())
    plan = (TERRAFORM / "plan/main.tf").read_text()
    assert 'builds_bucket = "${var.project}-${local.prefix}builds"' in plan
    assert build["substitutions"]["_ARTIFACTS_BUCKET"] == "${PROJECT_ID}-${_PREFIX}builds"


@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on PATH")
def test_the_files_are_formatted() -> None:
    found = run_to_end(["terraform", "fmt", "-check", "-recursive", "-no-color"], cwd=TERRAFORM)
    assert found.returncode == 0, found.stdout
