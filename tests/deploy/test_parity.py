"""Terraform deploys what the local stack starts, to the last name, filter, timeout and variable."""

from datetime import timedelta
from pathlib import Path, PurePosixPath

import pytest
from google.pubsub_v1 import Subscription

from tests.deploy.hcl import TERRAFORM
from tests.deploy.plan import PROJECT, REGION, TERRAFORM_BINARY, plan
from tests.deploy.reach import Call, calls_of
from trainmaster.cli.stack.product import read_topology
from trainmaster.deploy.names import permissions
from trainmaster.orchestrator.core.events.self_test import SELF_TEST_PREFIX
from trainmaster.orchestrator.core.names import JOBS_PREFIX, STARTED_PREFIX, cap_object
from trainmaster.orchestrator.core.notices.deliveries import DELIVERIES_PREFIX
from trainmaster.orchestrator.settings import LEASE_MARGIN, settings_from
from trainstack.events.backoff import Backoff
from trainstack.events.eventarc import subscription_of, transport_of
from trainstack.functions.function import BucketTrigger, Function, TopicTrigger, environment_of
from trainstack.logging.filters import parse_filter
from trainstack.stack.deliveries import kept_subscription
from trainstack.stack.topology import Topology

pytestmark = pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")

CLOUD = Backoff(min_s=10, max_s=600)
"""Eventarc's pauses: https://cloud.google.com/eventarc/docs/retry-events"""

SET_BY_THE_PLATFORM = {
    "PATH", "HOME", "LANG", "PYTHONUNBUFFERED", "HOST", "PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION",
    "FUNCTION_TARGET", "FUNCTION_SIGNATURE_TYPE", "CLOUD_RUN_TIMEOUT_SECONDS",
}  # fmt: skip
"""Variables that Cloud Run and a function's build set themselves:
https://cloud.google.com/functions/docs/configuring/env-var"""


@pytest.fixture(scope="module")
def local() -> Topology:
    return read_topology(TERRAFORM.parent / "topology.yaml", project=PROJECT, region=REGION)


def local_subscription(function: Function) -> Subscription:
    return subscription_of(function, transport_of(function, project=PROJECT, region=REGION), CLOUD)


def test_buckets_and_topics_are_the_same(local: Topology) -> None:
    assert plan()["buckets"] == dict(local.buckets)
    assert plan()["topics"] == dict(local.topics)


def test_the_functions_are_the_same(local: Topology) -> None:
    assert set(plan()["functions"]) == {function.name for function in local.functions}
    for function in local.functions:
        deployed = plan()["functions"][function.name]
        assert deployed["entry_point"] == function.entry_point
        assert deployed["timeout_s"] == function.timeout_s
        assert deployed["memory"] == f"{function.memory_mib}Mi"
        assert deployed["concurrency"] == function.concurrency
        assert deployed["retry"] == function.retry


def test_each_function_receives_the_same_events(local: Topology) -> None:
    for function in local.functions:
        trigger = plan()["triggers"][function.name]
        assert trigger["function"] == function.name
        match function.trigger:
            case BucketTrigger(bucket=bucket):
                assert trigger["criteria"] == {
                    "type": "google.cloud.storage.object.v1.finalized",
                    "bucket": bucket,
                }
                assert trigger["topic_role"] is None
            case TopicTrigger(topic=topic):
                assert trigger["criteria"] == {"type": "google.cloud.pubsub.topic.v1.messagePublished"}
                assert plan()["topics"][trigger["topic_role"]] == topic


def test_each_functions_subscription_has_the_same_policy(local: Topology) -> None:
    for function in local.functions:
        ours, theirs = local_subscription(function), plan()["functions"][function.name]["subscription"]
        assert theirs["ack_deadline_s"] == ours.ack_deadline_seconds
        assert theirs["retention_s"] == ours.message_retention_duration.total_seconds()
        assert theirs["min_pause_s"] == ours.retry_policy.minimum_backoff.total_seconds()
        assert theirs["max_pause_s"] == ours.retry_policy.maximum_backoff.total_seconds()
        dead = ours.dead_letter_policy
        assert (theirs["max_attempts"] or 0) == dead.max_delivery_attempts
        dead_topic = theirs["dead_letter_topic"]
        assert (f"projects/{PROJECT}/topics/{dead_topic}" if dead_topic else "") == dead.dead_letter_topic


def test_the_environment_is_the_same_and_is_one_that_the_functions_take(
    local: Topology, tmp_path: Path
) -> None:
    for function in local.functions:
        environment = plan()["functions"][function.name]["environment"]
        shared = {**local.environment, "GOOGLE_CLOUD_PROJECT": PROJECT}
        ours = environment_of(function, shared=shared, port=8080, home=tmp_path)
        assert environment == {name: value for name, value in ours.items() if name not in SET_BY_THE_PLATFORM}
        settings = settings_from(environment)
        assert settings.target.project == PROJECT
        assert settings.target.region == REGION
        assert settings.target.models_bucket == plan()["buckets"]["models"]
        assert all(plan()["buckets"][role] == bucket for role, bucket in vars(settings.buckets).items())
        assert settings.notices_topic == plan()["topics"]["notices"]
        assert settings.vertex_endpoint is None


def test_a_lease_outlasts_the_function_and_an_event_is_redelivered_only_after_it_ended(
    local: Topology,
) -> None:
    for function in local.functions:
        deployed = plan()["functions"][function.name]
        settings = settings_from(deployed["environment"])
        assert settings.lease.total_seconds() == deployed["timeout_s"] + LEASE_MARGIN.total_seconds()
        assert deployed["subscription"]["ack_deadline_s"] >= deployed["timeout_s"]


def test_subscriptions_that_keep_messages_are_the_same(local: Topology) -> None:
    assert len(plan()["subscriptions"]) == len(local.subscriptions)
    for kept in local.subscriptions:
        ours = kept_subscription(kept)
        theirs = plan()["subscriptions"][kept.subscription_name.rpartition("/")[2]]
        assert ours.topic == f"projects/{PROJECT}/topics/{theirs['topic']}"
        assert theirs["retention_s"] == ours.message_retention_duration.total_seconds()
        assert theirs["ack_deadline_s"] == ours.ack_deadline_seconds


def test_the_sinks_are_the_same_and_their_filter_is_the_file(local: Topology) -> None:
    assert set(plan()["sinks"]) == {sink.name for sink in local.sinks}
    for sink in local.sinks:
        theirs = plan()["sinks"][sink.name]
        assert theirs["filter"] == sink.filter == (TERRAFORM.parent / "log_sink.filter").read_text()
        assert f"projects/{PROJECT}/topics/{theirs['topic']}" == sink.topic_name
        parse_filter(theirs["filter"])


def test_the_schedules_are_the_same(local: Topology) -> None:
    assert set(plan()["schedules"]) == {schedule.name for schedule in local.schedules}
    for schedule in local.schedules:
        theirs = plan()["schedules"][schedule.name]
        assert (theirs["cron"], theirs["time_zone"]) == (schedule.cron, schedule.time_zone)
        assert theirs["data"].encode() == schedule.data
        assert f"projects/{PROJECT}/topics/{theirs['topic']}" == schedule.topic_name


def test_the_trainers_image_is_in_the_repository_that_is_made(local: Topology) -> None:
    assert local.images["trainer"] == f"{REGION}-docker.pkg.dev/{PROJECT}/{plan()['repository']}/trainer"


def test_account_ids_are_valid() -> None:
    ids = [account["id"] for account in plan()["accounts"].values()]
    assert len(set(ids)) == len(ids)
    for each in ids:
        assert 6 <= len(each) <= 30, each
        assert each.replace("-", "").isalnum()
        assert each.islower()


def test_jobs_without_an_account_run_as_the_trainers_and_their_submitters_may_act_as_it() -> None:
    submitting = {
        name
        for name, function in plan()["functions"].items()
        if Call(name="VertexJobs.submit") in calls_of(function["entry_point"])
    }
    assert submitting >= {"on-request-uploaded", "on-tick"}
    email = f"{plan()['accounts']['trainer']['id']}@{PROJECT}.iam.gserviceaccount.com"
    for name in submitting:
        assert settings_from(plan()["functions"][name]["environment"]).target.service_account == email
    acting = {
        grant["account"]
        for grant in plan()["grants"]["account"].values()
        if (grant["role"], grant["name"]) == ("roles/iam.serviceAccountUser", "trainer")
    }
    assert submitting <= acting


def test_a_build_may_act_as_every_account_that_its_functions_run_and_are_built_as() -> None:
    acting = {g["name"] for g in plan()["grants"]["account"].values() if g["account"] == "build"}
    assert acting == {*plan()["functions"], "build"}


def test_marks_in_the_ledger_stay_for_as_long_as_they_count() -> None:
    """By the beginnings that the functions give them; a mark that goes too early would let a cap be passed."""
    days = {prefix: timedelta(days=number) for prefix, number in plan()["ledger_days"].items()}
    caps = cap_object("")
    assert set(days) == {
        STARTED_PREFIX,
        SELF_TEST_PREFIX,
        f"{PurePosixPath(caps).parent}/",
        DELIVERIES_PREFIX,
        JOBS_PREFIX,
    }
    # Later ends are found by the tick.
    assert days[JOBS_PREFIX] > timedelta(days=30)
    # A mark of a day's first minute still counts in its last, and a delivery may count towards the previous day.
    assert days[STARTED_PREFIX] > timedelta(days=2)
    assert days[SELF_TEST_PREFIX] > timedelta(days=1)
    # A notice that is replayed after all its time as a dead letter still goes only to the receivers that are left.
    kept = max(each["retention_s"] for each in plan()["subscriptions"].values())
    assert days[DELIVERIES_PREFIX] > timedelta(seconds=kept) + timedelta(days=1)


def test_roles_of_agents_that_the_first_job_creates_are_not_terraforms() -> None:
    late = {name for name, agent in permissions()["agents"].items() if "created_by" in agent}
    assert late == {"custom_code"}
    granted = {grant["account"] for grants in plan()["grants"].values() for grant in grants.values()}
    assert late & (granted | set(plan()["agents"])) == set()
    assert "aiplatform" in granted
