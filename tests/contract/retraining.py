"""The world with rules: drops, data events, ticks and signals as the triggers would deliver them."""

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tests.contract.world import INBOX, LEASE, LEDGER, REQUEST_RULES, Boundary, Crossing, World
from tests.core.admission_cases import PRICES
from tests.judges.events import FINALIZED, event_faults
from tests.narrowing import present
from trainmaster.orchestrator.core.events.envelope import Envelope, PubsubMessage
from trainmaster.orchestrator.core.notices.notice import cloud_event
from trainmaster.orchestrator.core.requests.incoming import Ignored
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.retraining.arrivals import parse_arrived_object
from trainmaster.orchestrator.core.retraining.signals import (
    ParsedNotice,
    Signal,
    parse_alert,
    parse_image_push,
    parse_notice,
)
from trainmaster.orchestrator.core.retraining.state import RuleState
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.intake import take, take_upload
from trainmaster.orchestrator.flows.retraining.events import take_notice, take_signal
from trainmaster.orchestrator.flows.retraining.tick import tick_rules
from trainmaster.orchestrator.flows.scheduled import take_tick
from trainmaster.orchestrator.flows.services import FlowResult
from trainmaster.orchestrator.flows.turns import Turns
from trainmaster.orchestrator.stores.arrivals import ArrivalLog

DATA = "data-1"
IMAGE = "us-docker.pkg.dev/my-project/repo/trainer"
SMALL: dict[str, Any] = {
    "model_name": "cassava",
    "image": IMAGE,
    "cluster": {"chief": {"machine": "n1-standard-4"}},
}
NEW_DATA = {"new_data": {"objects": f"gs://{DATA}/**", "min_objects": 3, "quiet_s": 60, "max_wait_s": 600}}
MANUAL: dict[str, Any] = {"manual": {}}


def rule(*conditions: Mapping[str, Any], **more: object) -> dict[str, Any]:
    """A rule's document; by default it waits for data, and its run gets the number of objects."""
    if conditions:
        return {"when": list(conditions), "request": SMALL, **more}
    return {"when": [NEW_DATA], "request": {**SMALL, "args": ["--seen=${data.count}"]}, **more}


class RuleWorld(World):
    """A deployment in memory that may have rules."""

    def __init__(self, request_rules: RequestRules = REQUEST_RULES) -> None:
        super().__init__(request_rules, lambda: PRICES)
        self.log = ArrivalLog(self.objects, LEDGER, self.clock)
        self._messages = 0
        self._dropped: Envelope | None = None

    def put_rule(self, document: object, name: str = "rules/cassava.json") -> Envelope:
        """Drop the rule; returns the event."""
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        generation = self.objects.write(INBOX, name, content, if_generation=None)
        return self.finalized(INBOX, name, generation, len(content))

    def put_rule_once(self, document: object) -> Envelope:
        """As `put_rule`, but the drop is made only once and its event is the same each time."""
        self._dropped = self._dropped or self.put_rule(document)
        return self._dropped

    def remove_rule(self, name: str = "rules/cassava.json") -> None:
        self.objects.delete(INBOX, name)

    def finalized(
        self,
        bucket: str,
        name: str,
        generation: int,
        size_bytes: int,
        created_at: datetime | None = None,
        **more: str,
    ) -> Envelope:
        data = {
            **more,
            "bucket": bucket,
            "name": name,
            "generation": str(generation),
            "size": str(size_bytes),
            "timeCreated": (created_at or self.clock.now()).isoformat(),
        }
        assert not event_faults(FINALIZED, data)
        return self.envelope(data)

    def deliver_rule(self, event: Envelope, boundary: Boundary | None = None) -> FlowResult:
        (result,) = take_upload(self.services(boundary), event)
        return result

    def drop_rule(self, document: object, name: str = "rules/cassava.json") -> FlowResult:
        return self.deliver_rule(self.put_rule(document, name))

    def arrive(self, count: int, *, first: int = 0, log: ArrivalLog | None = None) -> None:
        """`count` objects arrive, one after the other."""
        for number in range(first, first + count):
            self.upload(f"day-1/{number}.jpg", b"0123456789", log=log, has_checksum=False)

    def upload(
        self,
        name: str,
        content: bytes,
        *,
        bucket: str = DATA,
        log: ArrivalLog | None = None,
        has_checksum: bool = True,
    ) -> None:
        """An object of the data bucket is written, and its event delivered."""
        self.objects.write(bucket, name, content, if_generation=None)
        found = self.objects.describe(bucket, name)
        event = self.finalized(
            bucket,
            name,
            found.generation,
            found.size_bytes,
            found.created_at,
            **({"crc32c": found.crc32c} if has_checksum else {}),
        )
        (log or self.log).append(parse_arrived_object(event))

    def crossing_log(self, boundary: Boundary) -> ArrivalLog:
        """The log of a new instance, whose calls cross the boundary."""
        return ArrivalLog(Crossing(self.objects, boundary), LEDGER, self.clock)

    def tick(self, boundary: Boundary | None = None) -> list[FlowResult]:
        """A tick's turns of the rules, without the runs."""
        services = self.services(boundary)
        turns = Turns(services)
        done = list(tick_rules(services, turns))
        turns.end()
        return done

    def tick_after(self, seconds: float) -> list[FlowResult]:
        self.wait(seconds)
        return self.tick()

    def take_tick(self, boundary: Boundary | None = None) -> list[FlowResult]:
        """A whole tick, as `on_tick` takes it."""
        return list(take_tick(self.services(boundary)))

    def wait(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    def signal(self, signal: Signal | Ignored, boundary: Boundary | None = None) -> list[FlowResult]:
        assert isinstance(signal, Signal), signal
        return list(take_signal(self.services(boundary), signal))

    def message(self, document: object, message_id: str = "") -> PubsubMessage:
        self._messages += 1
        return PubsubMessage(
            message_id=message_id or str(self._messages),
            publish_time=self.clock.now(),
            attributes={},
            data=json.dumps(document).encode(),
        )

    def pushed(self, digit: str, tag: str = "latest", message_id: str = "") -> Signal | Ignored:
        digest = f"{IMAGE}@sha256:{digit * 64}"
        document = {"action": "INSERT", "digest": digest, "tag": f"{IMAGE}:{tag}"}
        return parse_image_push(self.message(document, message_id))

    def alerted(self, incident_id: str, policy: str, state: str = "open") -> Signal | Ignored:
        incident = {"incident_id": incident_id, "policy_name": policy, "state": state, "summary": "drift"}
        return parse_alert(self.message({"incident": incident, "version": "1.2"}))

    def finish(self, number: int, boundary: Boundary | None = None) -> None:
        """The job of the nth run succeeds; its log entry is delivered, and then the notices that it causes."""
        if self.records()[number].job is None:  # the process that submitted it crashed
            self.wait(LEASE.total_seconds() + 1)
            self.reconcile()
        record = self.records()[number]
        job = self.jobs.read(present(record.job).name)
        if job.state is not JobState.SUCCEEDED:
            job = self.train(record)
        self.complete(self.hint(job), boundary)
        for notice in [each for each in self.notices.published if each.subject == record.run_id]:
            event = cloud_event(notice, "//trainmaster/test")
            heard = parse_notice(self.message(event))
            if isinstance(heard, ParsedNotice):
                list(take_notice(self.services(boundary), heard))

    def order(self, document: object, key: str, boundary: Boundary | None = None) -> FlowResult:
        data = base64.b64encode(json.dumps(document).encode()).decode()
        message = {"data": data, "attributes": {"idempotency_key": key}}
        return take(self.services(boundary), self.published(message))

    def records(self) -> list[RunRecord]:
        """Every run on record, oldest first."""
        names = [each.name for each in self.objects.listing(LEDGER, "runs/")]
        found = [self.record(name.removeprefix("runs/").removesuffix(".json")) for name in names]
        return sorted(found, key=lambda record: record.source.received_at)

    def state(self, rule_id: str = "cassava") -> RuleState:
        return present(self.services().rule_states.read(rule_id).document)

    def rule_status(self, name: str = "rules/cassava.json") -> dict[str, Any]:
        return self.document(f"status/{name}.json")

    def batches(self) -> Sequence[str]:
        return [each.name for each in self.objects.listing(LEDGER, "arrivals/")]
