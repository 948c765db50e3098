"""A request, in our own format or another, is the same job whichever process submits it; its warnings stay on record."""

from dataclasses import replace
from datetime import timedelta

import pytest
import yaml

from tests.contract.boundaries import dies_after, dies_before
from tests.contract.rooms import Answering
from tests.contract.schemas import RECORD, STATUS
from tests.contract.world import LEASE, REQUEST_RULES, ROOT, Killed, World
from tests.core.ai_platform_jobs import custom
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take

ROLES = (ROOT / "examples" / "roles.yaml").read_bytes()
DOUBTFUL = b"""
model_name: doubtful
image: us-central1-docker.pkg.dev/my-project/other/image:v1
cluster:
  chief: {machine: n1-standard-4}
  workers: {count: 2, machine: n1-standard-4}
scheduling: {spot: true}
"""
GCLOUD = [path.read_bytes() for path in sorted((ROOT / "examples" / "vertex").glob("*.yaml"))]
DROP = "requests/cassava.yaml"


@pytest.mark.parametrize("content", [ROLES, DOUBTFUL, *GCLOUD])
def test_a_process_that_takes_a_run_over_submits_the_same_job(world: World, content: bytes) -> None:
    watched = Answering(world)
    incoming = world.drop(content)
    with pytest.raises(Killed):
        world.launch(incoming, dies_before("write status"), jobs=watched)
    assert watched.sent == []
    world.clock.advance(LEASE)
    world.launch(incoming, jobs=watched)

    undisturbed = World()
    whole = Answering(undisturbed)
    undisturbed.launch(undisturbed.drop(content), jobs=whole)
    assert watched.sent == whole.sent
    assert len(whole.sent) == 1


def test_the_warnings_about_a_request_are_logged_and_kept_to_its_end(world: World) -> None:
    incoming = world.drop(DOUBTFUL)
    result = world.launch(incoming)
    assert result.severity == "WARNING"
    assert "warning: $.scheduling.spot: a preempted replica restarts alone" in result.message
    record = world.record(incoming.run_id)
    (problem,) = record.problems
    assert problem.startswith("$.scheduling.spot")
    RECORD.validate(encoded(record))
    status = world.document(f"status/{DROP}.json")
    STATUS.validate(status)
    assert status["problems"] == [problem]
    assert status["state"] == "submitted"
    world.launch(incoming)
    world.complete(world.hint(world.train(record)))
    ended = world.record(incoming.run_id)
    assert (ended.state, ended.problems) == (RunState.SUCCEEDED, (problem,))
    assert world.document(f"status/{DROP}.json")["problems"] == [problem]


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
