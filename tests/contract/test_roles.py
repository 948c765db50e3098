"""A request with roles becomes the same job whichever process submits it, and its warnings stay on record."""

import pytest

from tests.contract.boundaries import dies_before
from tests.contract.rooms import Answering
from tests.contract.schemas import RECORD, STATUS
from tests.contract.world import LEASE, ROOT, Killed, World
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.runs.states import RunState

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
