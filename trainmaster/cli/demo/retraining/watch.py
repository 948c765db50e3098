"""Where the retraining demo stands: the rule, its runs, the champion and the notices, read from the services."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster.cli.demo.progress import TrainingProgress
from trainmaster.cli.demo.retraining.data import Burst
from trainmaster.cli.demo.retraining.notices import Heard
from trainmaster.client.clients import Target, log_reader, storage_client
from trainmaster.client.job_logs import JobLogs
from trainmaster.client.records import document_at
from trainmaster.orchestrator.core.runs.states import ENDS

RULE_ID = "horses"
RULE_OBJECT = f"rules/{RULE_ID}.yaml"
MODEL_NAME = "horses-retrain"  # of examples/demo_retrain.yaml and examples/demo_rule.yaml

Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One burst on its way: how many files have arrived, and the whole of it once all have."""

    arrived: int = 0
    burst: Burst | None = None


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
    def counted(self) -> int:
        """Arrivals that the rule has counted since its last firing."""
        return int(self.rule.get("arrived", {}).get("count", 0))

    @property
    def is_settled(self) -> bool:
        """Whether nothing that arrived is left to fire on, no firing is under way, and every run has ended."""
        is_over = all(run["state"] in ENDS for run in self.runs)
        return not self.counted and "firing" not in self.rule and "queued" not in self.rule and is_over

    @property
    def verdicts(self) -> Sequence[Document]:
        found: Sequence[Document] = self.champion.get("considered", ())
        return found

    def verdict_on(self, run_id: str) -> Document | None:
        return next((verdict for verdict in self.verdicts if verdict["run_id"] == run_id), None)


class RetrainWatch:
    """Asks the services anew at every `look`; who uploads tells it of `deliveries`."""

    def __init__(self, target: Target, heard: Heard, started_at: datetime) -> None:
        self._target, self._heard, self._started_at = target, heard, started_at
        self._storage = storage_client(target)
        self._logging = log_reader(project=target.project, logging_host=target.logging_host)
        self._logs: dict[str, JobLogs] = {}
        self._training: dict[str, TrainingProgress] = {}
        self.deliveries: list[Delivery] = []

    def look(self) -> RetrainSighting:
        names = [blob.name for blob in self._storage.list_blobs(self._target.ledger_bucket, prefix="runs/")]
        runs = sorted((self._document(name) for name in names), key=lambda run: str(run["history"][0]["at"]))
        for run in runs:
            self._follow_training(run)
        return RetrainSighting(
            started_at=self._started_at,
            deliveries=tuple(self.deliveries),
            status=self._document(f"status/{RULE_OBJECT}.json"),
            rule=self._document(f"rule-state/{RULE_ID}.json"),
            runs=runs,
            champion=self._document(f"champions/{MODEL_NAME}.json"),
            notices=self._heard.notices(),
            training=dict(self._training),
        )

    def _follow_training(self, run: Document) -> None:
        run_id, job = str(run["run_id"]), run.get("job")
        if job is None:
            return
        logs = self._logs.setdefault(run_id, JobLogs(self._logging))
        known = self._training.get(run_id, TrainingProgress())
        for entry in logs.fresh(str(job["name"]).rpartition("/")[2]):
            if isinstance(entry.payload, dict):
                known = known.after(entry.payload)
        self._training[run_id] = known

    def _document(self, name: str) -> Document:
        return document_at(self._storage, self._target.ledger_bucket, name)
