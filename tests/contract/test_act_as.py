"""A run waits for a missing grant on its service account, and delays no other run."""

from datetime import timedelta

from tests.contract.rooms import Room, launched, places, states
from tests.contract.schemas import STATUS
from tests.contract.world import World, request_rules_with
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.waiting import WAIT_IN_ALL
from trainmaster.orchestrator.core.policy.admission import Admission, Limit

ACCOUNT = "vision@my-project.iam.gserviceaccount.com"
GRANT = f"gcloud iam service-accounts add-iam-policy-binding {ACCOUNT} "


def without_grant(*limits: Limit) -> World:
    world = World(request_rules_with(service_accounts=("*",), admission=Admission(limits=limits)))
    world.jobs.denied_accounts.add(ACCOUNT)
    return world


def denied(world: World, **changes: object) -> str:
    return launched(world, service_account=ACCOUNT, **changes)


def test_a_missing_grant_makes_the_run_wait_and_says_how_to_give_it() -> None:
    world = without_grant()
    run_id = denied(world)
    assert states(world, run_id) == ["waiting"]
    record = world.record(run_id)
    waiting = present(record.admission.waiting)
    assert waiting.lacks == f"act_as_{ACCOUNT}"
    assert f"permission to act as service_account: {ACCOUNT}" in waiting.reason
    assert GRANT in waiting.reason
    assert "--role=roles/iam.serviceAccountUser" in waiting.reason
    status = world.document(f"status/{record.source.object_name}.json")
    STATUS.validate(status)
    assert (status["state"], status["reason"]) == ("waiting", waiting.reason)


def test_in_one_pass_the_run_without_a_grant_lets_those_behind_it_go() -> None:
    world = without_grant()
    room = Room(world, 0)
    first, second, third = denied(world, priority=90), denied(world, priority=80), launched(world)
    room.places = None
    world.reconcile_after(timedelta(minutes=11))
    assert states(world, first, second, third) == ["waiting", "waiting", "submitted"]
    assert places(world) == [first, second]


def test_without_a_grant_for_seven_days_the_run_fails_with_the_reason() -> None:
    world = without_grant()
    run_id = denied(world)
    world.reconcile_after(WAIT_IN_ALL + timedelta(hours=1))
    assert states(world, run_id) == ["failed"]
    failure = present(world.record(run_id).failure)
    assert failure.message.startswith(
        "the deployment could not act as the job's service account in the 7 days since 2026-03-01"
    )
    assert GRANT in failure.message


def test_a_run_that_waited_for_a_grant_keeps_the_order_of_its_machines_afterwards() -> None:
    world = without_grant()
    first = denied(world)
    room = Room(world, 0)
    other = launched(world)
    world.jobs.denied_accounts.clear()
    world.reconcile_after(timedelta(minutes=11))
    assert states(world, first, other) == ["waiting", "waiting"]
    room.places, room.asked = 1, []
    world.reconcile_after(timedelta(minutes=11))
    assert states(world, first, other) == ["submitted", "waiting"]
