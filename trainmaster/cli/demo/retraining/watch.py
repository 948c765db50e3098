"""The state of the retraining demo: the rule, its runs, the champion and the notices, read from the services."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from trainmaster.cli.demo.retraining.data import Delivery, read_delivery
from trainmaster.client.clients import log_reader, pubsub_clients, storage_client
from trainmaster.client.context import Context
from trainmaster.client.logs.progress import TrainingProgress
from trainmaster.client.logs.read import JobLogs
from trainmaster.client.records import read_json
from trainmaster.orchestrator.core.runs.states import ENDS

if TYPE_CHECKING:
    from google.pubsub_v1 import SubscriberClient

RULE_ID = "horses"
RULE_OBJECT = f"rules/{RULE_ID}.yaml"
MODEL_NAME = "horses-retrain"  # of examples/demo_retrain.yaml and examples/demo_rule.yaml
RUNS_MAX = 100
"""Of the ledger: the demo's deployment has three."""
TOPIC, SUBSCRIPTION = "trainmaster-notices", "demo-retrain"

Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class RetrainSighting:
    """Everything at one moment; documents that do not exist yet are empty."""

    started_at: datetime  # the first request was dropped
    deliveries: Sequence[Delivery] = ()
    status: Document = field(default_factory=dict)  # schemas/rule_status.v1.schema.json
    rule: Document = field(default_factory=dict)  # schemas/rule_state.v1.schema.json
    runs: Sequence[Document] = ()  # schemas/run_record.v2.schema.json, oldest first
    champion: Document = field(default_factory=dict)  # schemas/champion.v1.schema.json
    notices: Sequence[Document] = ()  # schemas/notice.v1.schema.json, as they came
    training: Mapping[str, TrainingProgress] = field(default_factory=dict)  # by run id

    @property
    def rule_generation(self) -> int:
        """Of the rule that the status answers, 0 before there is one."""
        return int(self.status.get("generation", 0))

    @property
    def counted(self) -> int:
        """Arrivals that the rule has counted since its last firing."""
        return int(self.rule.get("arrived", {}).get("count", 0))

    @property
    def is_idle(self) -> bool:
        """Whether nothing that arrived is left to fire on, no firing is under way, and every run has ended."""
        is_over = all(run["state"] in ENDS for run in self.runs)
        return not self.counted and "firing" not in self.rule and "queued" not in self.rule and is_over

    @property
    def verdicts(self) -> Sequence[Document]:
        found: Sequence[Document] = self.champion.get("considered", ())
        return found

    def verdict_on(self, run_id: str) -> Document | None:
        return next((verdict for verdict in self.verdicts if verdict["run_id"] == run_id), None)


@contextmanager
def notices_of(target: Context, pubsub_host: str) -> "Iterator[SubscriberClient]":
    """The client of a subscription to every notice that is published from now on."""
    with pubsub_clients(pubsub_host) as (subscriber, _):
        topic = f"projects/{target.project}/topics/{TOPIC}"
        subscriber.create_subscription(name=_subscription(target), topic=topic)
        yield subscriber


class RetrainWatch:
    """Queries the services at every `look`; `bursts` is the number of bursts started so far."""

    def __init__(
        self, target: Context, data_bucket: str, notices: "SubscriberClient", started_at: datetime
    ) -> None:
        self._target, self._data_bucket, self._started_at = target, data_bucket, started_at
        self._subscriber = notices
        self._storage = storage_client(target)
        self._logging = log_reader(project=target.project, logging_host=target.logging_host)
        self._logs: dict[str, JobLogs] = {}
        self._training: dict[str, TrainingProgress] = {}
        self._notices: dict[str, Document] = {}  # by id: they come at least once
        self.bursts = 0

    def look(self) -> RetrainSighting:
        self._take_notices()
        listed = self._storage.list_blobs(self._target.ledger_bucket, prefix="runs/", max_results=RUNS_MAX)
        names = [blob.name for blob in listed]
        runs = sorted((self._document(name) for name in names), key=lambda run: str(run["history"][0]["at"]))
        for run in runs:
            self._follow_training(run)
        deliveries = [
            read_delivery(self._target, self._data_bucket, number) for number in range(1, self.bursts + 1)
        ]
        return RetrainSighting(
            started_at=self._started_at,
            deliveries=deliveries,
            status=self._document(f"status/{RULE_OBJECT}.json"),
            rule=self._document(f"rule-state/{RULE_ID}.json"),
            runs=runs,
            champion=self._document(f"champions/{MODEL_NAME}.json"),
            notices=tuple(self._notices.values()),
            training=dict(self._training),
        )

    def _take_notices(self) -> None:
        subscription = _subscription(self._target)
        pulled = self._subscriber.pull(
            request={"subscription": subscription, "max_messages": 100, "return_immediately": True}
        )
        for received in pulled.received_messages:
            notice = json.loads(received.message.data)
            self._notices.setdefault(str(notice["id"]), notice)
        if ack_ids := [received.ack_id for received in pulled.received_messages]:
            self._subscriber.acknowledge(subscription=subscription, ack_ids=ack_ids)

    def _follow_training(self, run: Document) -> None:
        run_id, job = str(run["run_id"]), run.get("job")
        if job is None or run["state"] in ENDS:
            return
        logs = self._logs.setdefault(run_id, JobLogs(self._logging, self._started_at))
        known = self._training.get(run_id, TrainingProgress())
        for line in logs.new([str(job["name"]).rpartition("/")[2]]):
            if isinstance(line.payload, dict):
                known = known.after(line.payload)
        self._training[run_id] = known

    def _document(self, name: str) -> Document:
        return read_json(self._storage, self._target.ledger_bucket, name) or {}


def _subscription(target: Context) -> str:
    return f"projects/{target.project}/subscriptions/{SUBSCRIPTION}"
