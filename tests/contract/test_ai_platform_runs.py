"""A dropped AI Platform Training job is a run like any other, across crashes and changes of policy."""

from dataclasses import replace
from datetime import timedelta

import pytest
import yaml

from tests.contract.boundaries import dies_after, dies_before
from tests.contract.world import LEASE, REQUEST_RULES, Killed, World
from tests.core.ai_platform_jobs import custom
from tests.narrowing import present
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take

NAME = "requests/vision/Census 2.yaml"


def job(job_dir: str) -> bytes:
    document = custom(jobDir=job_dir)
    del document["labels"]
    return yaml.safe_dump(document).encode()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_run_writes_where_its_record_says_though_the_policy_changed(world: World, after: bool) -> None:
    incoming = world.drop(job("gs://elsewhere/jobs"), NAME)
    policy = present(REQUEST_RULES.policy)
    wider = replace(REQUEST_RULES, policy=replace(policy, output_prefixes=("gs://elsewhere",)))
    services = world.services(dies_after("submit") if after else dies_before("submit"))
    services.request_rules = lambda: wider
    with pytest.raises(Killed):
        take(services, incoming)
    world.clock.advance(LEASE + timedelta(seconds=1))
    world.launch(incoming)
    (submitted,) = world.jobs.all()
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUBMITTED
    assert submitted.output_uri == record.output_uri == f"gs://elsewhere/jobs/census-2/{incoming.run_id}"
