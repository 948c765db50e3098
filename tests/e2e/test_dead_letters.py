"""Poison events on a running stack are dead-lettered with their reason, delay no other, and can be replayed."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command import Done, trainmaster
from trainstack.events.clients import clients_of

from .project import ENDED, ROOT, Project, image_uri, request, running_project
from .topologies import own_topology, written

pytestmark = pytest.mark.slow(seconds=40)

ATTEMPTS = 5
RULES = {"poisoned-order": "on-request-published", "poisoned-image": "on-image-pushed"}
"""Rules whose state will be damaged, each with the function that will fail on it."""


def impatient_topology(folder: Path) -> Path:
    """The project's topology, but events are dead-lettered as early as Pub/Sub allows."""
    topology = own_topology()
    for function in topology["functions"].values():
        if "dead_letter" in function:
            function["dead_letter"]["max_attempts"] = ATTEMPTS
    return written(topology, folder)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("dead")
    arguments = (
        "--topology", str(impatient_topology(folder)),
        "--retry-min-s", "0.1", "--retry-max-s", "0.5", "--tick-s", "3600",
    )  # fmt: skip
    with running_project(folder / "state", *arguments, project="e2e-dead") as running:
        yield running


def dead_letters(project: Project, verb: str, *ids: str) -> Done:
    words = ("dead-letters", verb, "--context", f"local:{project.state}", *ids)
    return trainmaster(*words, cwd=ROOT, environment=os.environ)


def listed(project: Project) -> dict[str, str]:
    """What `ls` shows of each dead letter, by its id."""
    done = dead_letters(project, "ls")
    assert done.status == 0, done.err
    letters: dict[str, str] = {}
    letter_id = ""
    for line in done.out.splitlines():
        if not line.startswith(" "):
            letter_id = line.partition(" ")[0]
        letters[letter_id] = f"{letters.get(letter_id, '')}{line}\n"
    return letters


class ProbeSubscription:
    """Sees what is published to topics of a project from now on."""

    def __init__(self, project: Project, *topics: str) -> None:
        self._project, self._topics = project, topics
        with clients_of(project.env["PUBSUB_EMULATOR_HOST"]) as clients:
            for topic in topics:
                name = f"projects/{project.id}/topics/{topic}"
                clients.subscriber.create_subscription(name=self._name(topic), topic=name)

    def seen(self) -> dict[str, list[Any]]:  # the library's messages carry no types
        with clients_of(self._project.env["PUBSUB_EMULATOR_HOST"]) as clients:
            pulls = {
                topic: clients.subscriber.pull(subscription=self._name(topic), max_messages=99, timeout=60)
                for topic in self._topics
            }
        return {topic: [each.message for each in pull.received_messages] for topic, pull in pulls.items()}

    def _name(self, topic: str) -> str:
        return f"projects/{self._project.id}/subscriptions/witness-of-{topic}"


def accept_rule(project: Project, rule_id: str, condition: dict[str, Any], image: str) -> None:
    model = {"model_name": rule_id, "image": image, "cluster": {"chief": {"machine": "n1-standard-4"}}}
    name = f"rules/{rule_id}.json"
    project.upload(name, json.dumps({"when": [condition], "request": model}))
    status = project.eventually(lambda: project.status(name), f"an answer to {name}")
    assert status["state"] == "accepted", status


def state_of_rule(project: Project, rule_id: str) -> Any:  # the library's blobs carry no types
    return project.storage.bucket(project.ledger).blob(f"rule-state/{rule_id}.json")


def push(project: Project, tag: str) -> str:
    repository = image_uri(project.id)
    message = {"action": "INSERT", "digest": f"{repository}@sha256:{'a1' * 32}", "tag": f"{repository}:{tag}"}
    return project.publish("gcr", json.dumps(message).encode())


def runs_of(project: Project, rule_id: str) -> list[dict[str, Any]]:
    return [record for record in project.records().values() if record["source"].get("rule_id") == rule_id]


def ended_runs(project: Project, rule_id: str) -> list[dict[str, Any]]:
    """The rule's runs, once there are some and all have ended."""

    def ended() -> list[dict[str, Any]] | None:
        runs = runs_of(project, rule_id)
        return runs if runs and all(run["state"] in ENDED for run in runs) else None

    return project.eventually(ended, f"the runs of {rule_id} have ended")


def answered(project: Project, event_id: str, statuses: list[int]) -> None:
    project.eventually(
        lambda: project.requests_to_functions(event_id) == statuses,
        f"event {event_id} is answered {statuses}",
    )


def two_letters(project: Project) -> dict[str, str]:
    def two() -> dict[str, str] | None:
        letters = listed(project)
        return letters if len(letters) == len(RULES) else None

    return project.eventually(two, "both events are dead letters")


def test_a_poison_event_is_dead_lettered_with_its_reason_blocks_no_other_and_is_replayed_once(
    impatient: Project,
) -> None:
    project, own = impatient, image_uri(impatient.id)
    accept_rule(project, "poisoned-order", {"manual": {}}, f"{own}:1")
    accept_rule(
        project, "poisoned-image", {"new_image": {"repository": own, "tag": "poison"}}, "${image.uri}"
    )
    for rule_id in RULES:
        state_of_rule(project, rule_id).upload_from_string("no JSON")
    order_id = project.publish("trainmaster-requests", b"fire: {rule: poisoned-order}")
    push_id = push(project, "poison")
    behind = [push(project, f"harmless-{number}") for number in range(30)]
    project.upload("requests/behind.yaml", request(project.id))

    for event_id in behind:
        answered(project, event_id, [200])
    assert project.final_status("requests/behind.yaml")["state"] == "succeeded"

    # Dead-lettered, with the reason; no run was started.
    for event_id in (order_id, push_id):
        answered(project, event_id, [500] * ATTEMPTS)
    letters = two_letters(project)
    for rule_id, function in RULES.items():
        (letter,) = [shown for shown in letters.values() if f"rule-state/{rule_id}.json" in shown]
        assert "DocumentDamaged" in letter
        assert f"eventarc-us-central1-{function}-sub" in letter
        assert f"after {ATTEMPTS} deliveries" in letter
        assert runs_of(project, rule_id) == []

    # Too early: they fail again, which is reported, and are dead letters again.
    early = dead_letters(project, "replay", "--wait-s", "15")
    assert early.status == 1
    assert early.out.count("replayed, and it failed again: ") == len(RULES), early.out + early.err
    assert not two_letters(project).keys() & letters.keys()

    # Once the state is repaired, the same events are accepted, and each rule fires once.
    witness = ProbeSubscription(project, "trainmaster-requests", "gcr")
    for rule_id in RULES:
        state_of_rule(project, rule_id).delete()
    done = dead_letters(project, "replay", "--wait-s", "100")
    assert done.status == 0, done.out + done.err
    assert done.out.count("replayed successfully: ") == len(RULES), done.out
    for rule_id in RULES:
        (run,) = ended_runs(project, rule_id)
        assert run["state"] == "succeeded"
    assert dead_letters(project, "replay").err == "No dead letters.\n"

    # A replay that died before it took the letters off puts them back once more: they are known again.
    for topic, messages in witness.seen().items():
        (last,) = messages
        assert last.attributes["trainmaster_replayed_id"] in (order_id, push_id)
        answered(project, project.publish(topic, last.data, **last.attributes), [200])
    assert {rule_id: len(runs_of(project, rule_id)) for rule_id in RULES} == dict.fromkeys(RULES, 1)
