"""`trainmaster queue` on a real storage server, with what the flows wrote: runs that wait for a limit and for room."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import click
import pytest

from tests.cli.screens import assert_screen
from tests.client.mirrored import mirror, queueing_world
from tests.client.served import Served, served_context
from tests.contract.teams import SPEECH, VISION, drop, world_of_teams
from tests.contract.test_retries import lose, retried
from tests.contract.world import World
from tests.core.shipped import assert_valid
from tests.narrowing import present
from trainmaster.cli.runs.queue_verb import SPARE, queue_rows
from trainmaster.cli.table import fact_lines, table_lines
from trainmaster.client.runs.queue_listing import QueueListing, read_queue
from trainmaster.client.shown.queue_lines import outside_text, queue_facts
from trainmaster.orchestrator.core.admission.index_row import index_row_of
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.policy.admission import Admission, Limit


@pytest.fixture(scope="module")
def world() -> World:
    return queueing_world()


@pytest.fixture(scope="module")
def served(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_context(tmp_path_factory.mktemp("served")) as served:
        mirror(world, served)
        yield served


@pytest.fixture(scope="module")
def found(world: World, served: Served) -> QueueListing:
    assert world.request_rules.policy is not None
    return read_queue(served.clients, world.clock.now(), world.request_rules.policy.admission)


@pytest.mark.parametrize("width", [80, 120])
def test_the_screen_of_the_queue(found: QueueListing, width: int) -> None:
    lines = [
        *table_lines(queue_rows(found), width=width, spare=SPARE),
        *fact_lines(queue_facts(found), width=width),
    ]
    assert_screen(f"queue.{width}", "".join(f"{click.unstyle(line)}\n" for line in lines))
    assert max(map(len, map(click.unstyle, lines))) <= width


def test_the_command_prints_the_same_for_people_and_programs(served: Served, found: QueueListing) -> None:
    names = [each.run_id for each in found.waiting]
    assert served.trainmaster("queue", "-o", "name").out.split() == names
    assert [
        each["run_id"] for each in json.loads(served.trainmaster("queue", "-o", "json").out)["waiting"]
    ] == names
    done = served.trainmaster("queue", "--verbose")
    assert done.status == 0
    assert [line.split()[1] for line in done.out.splitlines()[1:5]] == names
    assert "Storage operations: 6." in done.err
    assert "The limits and caps are unknown: " in done.err  # this ledger has no deployment.json


def test_a_teams_queue_has_its_runs_with_their_positions_among_all(tmp_path: Path) -> None:
    world = world_of_teams(admission=Admission(limits=(Limit(jobs=1),)))
    runs = [drop(world, team, stem=f"r{n}").run_id for n, team in enumerate((VISION, VISION, SPEECH, VISION))]
    with served_context(tmp_path) as served:
        mirror(world, served)
        for team, expected in ((SPEECH, [(2, runs[2])]), (VISION, [(1, runs[1]), (3, runs[3])])):
            document = json.loads(served.trainmaster("queue", "--team", team, "-o", "json").out)
            assert [(each["position"], each["run_id"]) for each in document["waiting"]] == expected
            assert document["complete"]


def test_runs_that_wait_at_the_training_service_are_named_below_an_empty_queue(tmp_path: Path) -> None:
    world = World()
    runs = []
    for number in range(7):
        runs.append(world.launch(world.drop(name=f"requests/r{number}.yaml")).run_id)
        world.clock.advance(timedelta(seconds=1))
    with served_context(tmp_path) as served:
        mirror(world, served)
        done = served.trainmaster("queue")
        document = json.loads(served.trainmaster("queue", "-o", "json").out)
    assert "No run is in the queue." in done.err
    assert "submitted    7 runs at the training service, not started yet:\n" in done.out
    assert f"             {runs[0]}: queued " in done.out
    assert "             and 2 more: trainmaster ls --state submitted\n" in done.out
    assert document["submitted"] == runs
    assert_valid(document, "queue.v1")


def test_a_run_that_pauses_before_a_retry_is_named_with_when_and_why_until_it_has_a_place(
    tmp_path: Path,
) -> None:
    world = World()
    run_id = retried(world)
    lose(world, run_id)
    with served_context(tmp_path) as served:
        mirror(world, served)
        done = served.trainmaster("queue")
        document = json.loads(served.trainmaster("queue", "-o", "json").out)
    why = "retry 1 of 2 after infrastructure: Internal error occurred. Please retry in a few minutes."
    assert "to retry     1 run pausing after the loss of a job:\n" in done.out
    assert f"             {run_id}: next try now: {why}\n" in done.out  # the world is long ago
    (pausing,) = document["pausing"]
    due = present(world.record(run_id).admission.waiting).not_before
    assert pausing == {"run_id": run_id, "retry_at": encoded(due), "reason": why}
    assert_valid(document, "queue.v1")
    (row,) = (index_row_of(world.record(run_id), 1),)
    assert outside_text(row, due - timedelta(seconds=45)) == f"next try in 45s: {why}"


def test_an_empty_queue_says_so(tmp_path: Path) -> None:
    with served_context(tmp_path) as served:
        done = served.trainmaster("queue")
    assert done.status == 0
    assert done.err.endswith("No run is in the queue.\n")
    assert done.out == "started      0 this hour, 0 today (UTC)\n"
