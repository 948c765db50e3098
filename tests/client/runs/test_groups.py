"""The runs of a matrix are listed, waited for and repeated by the id of their group or of one of them."""

import json

import pytest

from tests.client.mirrored import mirror
from tests.client.served import Served, deployment
from tests.contract.retraining import SMALL
from tests.contract.world import World, request_rules_with
from trainmaster.client.errors import NotFound
from trainmaster.client.find import find_run, group_id_of, read_run, run_ids_of
from trainmaster.client.submission.again import request_again
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.send import Sent, as_refused
from trainmaster.orchestrator.core.policy.admission import Admission, Caps
from trainmaster.orchestrator.core.runs.states import RunState

STATUS = "status/requests/m.json.json"
MATRIX = {**SMALL, "matrix": {"learning_rate": [0.1, 0.01], "seed": [1, 2]}}


@pytest.fixture
def group(served: Served) -> str:
    """The id of a group whose runs have succeeded."""
    world = World()
    group_id = world.drop_and_launch(json.dumps(MATRIX).encode(), "requests/m.json").run_id
    for run_id in reversed(world.document(STATUS)["run_ids"]):
        world.train(world.record(run_id))
    world.reconcile()
    mirror(world, served)
    served.write("ledger", "deployment.json", deployment())
    return group_id


def test_a_group_is_named_by_its_id_or_by_any_run_of_it(served: Served, group: str) -> None:
    run_ids = run_ids_of(served.clients, group)
    assert {group_id_of(served.clients, name) for name in (group, *run_ids, "m.json")} == {group}
    with pytest.raises(NotFound, match=f"is a group of 4 runs. List them: trainmaster ls --group {group}"):
        find_run(served.clients, group)
    listed = served.trainmaster("ls", "--group", run_ids[2], "-o", "name").out.split()
    assert sorted(listed) == sorted(run_ids)
    waited = served.trainmaster("wait", group)
    assert (waited.status, waited.out.split()) == (0, ["succeeded"] * 4)


def test_a_run_again_is_its_combination_alone(served: Served, group: str) -> None:
    run_id = run_ids_of(served.clients, group)[2]
    document = read_run(served.clients, run_id).document
    original = document["request"]["original"]
    original["uri"] = original["uri"].replace("gs://ledger/", f"gs://{served.clients.context.ledger_bucket}/")
    served.write("ledger", f"runs/{run_id}.json", document)
    edits = Edits(image="us-docker.pkg.dev/trainmaster-local/repo/trainer")
    repeated = json.loads(request_again(served.clients, read_run(served.clients, run_id), edits).content)
    assert (repeated["args"], "matrix" in repeated) == (["--learning_rate=0.01", "--seed=1"], False)


def test_a_matrix_that_a_cap_refuses_has_no_run_but_the_one_on_record() -> None:
    world = World(request_rules_with(admission=Admission(caps=Caps(runs_per_hour=3))))
    group_id = world.drop_and_launch(json.dumps(MATRIX).encode(), "requests/m.json").run_id
    sent = Sent(run_id=group_id, where="gs://inbox/requests/m.json", status_name=STATUS, runs=4)
    refused = as_refused(sent, world.document(STATUS))
    assert (refused.is_refused, refused.run_ids) == (True, (group_id,))
    assert world.record(group_id).state is RunState.REJECTED
    assert as_refused(sent, {"run_id": sent.run_ids[0]}).run_ids == sent.run_ids
