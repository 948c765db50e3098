"""Two teams in one deployment: what each drops, publishes, orders and trains."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.contract.retraining import SMALL, RuleWorld
from tests.contract.schemas import CHAMPION
from tests.contract.world import PROJECT, REGION, request_rules_with
from tests.judges.events import PUBLISHED, event_faults
from trainmaster.orchestrator.core.events.envelope import Envelope
from trainmaster.orchestrator.core.policy.admission import Admission
from trainmaster.orchestrator.core.policy.policy import Team
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.intake import take_message

VISION, SPEECH = "vision", "speech"
TEAMS = {name: Team(requests_topic=f"requests-{name}") for name in (VISION, SPEECH)}
DATA = f"{PROJECT}-data"
SOURCE = f"//trainmaster/projects/{PROJECT}/locations/{REGION}"
HASH = "0" * 64
NEEDS = {"metric": "accuracy", "goal": "maximize"}


def rules_with(**changes: Any) -> RequestRules:
    return request_rules_with(**{"regions": (REGION,), "admission": Admission(), "teams": TEAMS, **changes})


def world_of_teams(**changes: Any) -> RuleWorld:
    return RuleWorld(rules_with(**changes))


def account(team: str) -> str:
    return f"tm-trainer-{team}@{PROJECT}.iam.gserviceaccount.com"


def drop(world: RuleWorld, team: str, document: object = SMALL, stem: str = "cassava") -> RunRecord:
    """The record of what the team dropped."""
    world.wait(1)
    return dropped(world, f"requests/{team}/{stem}.json", document)


def dropped(world: RuleWorld, name: str, document: object = SMALL) -> RunRecord:
    incoming = world.drop(json.dumps(document).encode(), name)
    world.launch(incoming)
    return world.record(incoming.run_id)


def ordered(world: RuleWorld, team: str, order: object) -> Mapping[str, Any]:
    """The status of the team's order."""
    world.wait(1)
    world.launch(world.drop(json.dumps(order).encode(), f"requests/{team}/order.json"))
    return world.document(f"status/requests/{team}/order.json.json")


def published(
    world: RuleWorld,
    topic: str,
    document: object,
    message_id: str = "1",
    /,
    **attributes: str,
) -> None:
    data = base64.b64encode(json.dumps(document).encode()).decode()
    message = {"messageId": message_id, "data": data, "attributes": attributes}
    assert not event_faults(PUBLISHED, {"message": message})
    now = world.clock.now()
    list(
        take_message(
            world.services(),
            Envelope(
                id=f"{topic}-{message_id}",
                type=PUBLISHED,
                source=f"//pubsub.googleapis.com/projects/{PROJECT}/topics/{topic}",
                subject="",
                time=now,
                received_at=now,
                data={"message": message},
            ),
        )
    )


def trained(world: RuleWorld, team: str, accuracy: float, stem: str) -> RunRecord:
    """The record of a run of the team that has ended with this accuracy."""
    record = drop(world, team, {**SMALL, "champion": NEEDS}, stem)
    world.train(record, accuracy)
    number = next(number for number, each in enumerate(world.records()) if each.run_id == record.run_id)
    world.finish(number)
    return world.record(record.run_id)


def champion(world: RuleWorld, team: str) -> dict[str, Any]:
    found = world.document(f"champions/{team}/cassava.json")
    CHAMPION.validate(found)
    return found


def put(world: RuleWorld, team: str, when: object, stem: str = "again", **more: object) -> Mapping[str, Any]:
    """The status of the team's rule."""
    world.wait(1)
    name = f"rules/{team}/{stem}.json"
    world.drop_rule({"when": [when], "request": {**SMALL, "model_name": "again"}, **more}, name)
    return world.rule_status(name)


def fired(world: RuleWorld, rule_id: str) -> list[RunRecord]:
    return [each for each in world.records() if each.source.rule_id == rule_id]


@contextmanager
def policy_changes(world: RuleWorld, **changes: Any) -> Iterator[None]:
    yield
    world.request_rules = rules_with(**changes)
