"""The ports and the deployment's values, which every flow receives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from trainmaster.orchestrator.core.admission.cost import ReadPrices
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.names import Buckets
from trainmaster.orchestrator.core.policy.policy import Policy
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.requests.submission import Target
from trainmaster.orchestrator.flows.process_memory import HintReads
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.ports.objects import Objects
from trainmaster.orchestrator.ports.services import (
    Clock,
    JobLogs,
    MachineMetrics,
    ModelRegistry,
    Notices,
    TrainingJobs,
)
from trainmaster.orchestrator.stores.admission import PoolMarks, Queue, Slots, Starts
from trainmaster.orchestrator.stores.arrivals import Arrivals
from trainmaster.orchestrator.stores.attempts import Attempts
from trainmaster.orchestrator.stores.champions import ChampionCopies, Champions
from trainmaster.orchestrator.stores.deliveries import Deliveries
from trainmaster.orchestrator.stores.inbox import Inbox, Models
from trainmaster.orchestrator.stores.ledger import Ledger
from trainmaster.orchestrator.stores.retention import Removable, Retained
from trainmaster.orchestrator.stores.rule_data import RuleData, WatchedObjects
from trainmaster.orchestrator.stores.rules import RuleBook, RuleStates, RuleStatuses
from trainmaster.orchestrator.stores.views import DropStatuses, Index

SUBMIT_NEEDS = timedelta(seconds=45)
"""How much of a lease must be left when a submission starts; longer than the adapter's limit for the whole call."""


@dataclass(eq=False, repr=False, kw_only=True)
class Services:
    """What reaches outside the process, the deployment, and the `attempt` of this delivery, which begins now.

    `attempt` is random text from the entry point. `timeout`: how long the function may take. `turns_at_once`: rules that
    get their turn in parallel. `prepare_jobs` does what a region needs before a submission can be sent. `request_rules`,
    `policy`, `prices` and `export_schema` are read when first needed: a duplicate upload needs none of them.
    """

    objects: Objects
    jobs: TrainingJobs
    job_logs: JobLogs
    model_registry: ModelRegistry
    machine_metrics: MachineMetrics
    notices: Notices
    clock: Clock
    target: Target
    buckets: Buckets
    lease: timedelta
    timeout: timedelta
    attempt: str
    request_rules: Callable[[], RequestRules]
    policy: Callable[[], Policy]
    export_schema: Callable[[], Mapping[str, Any]]
    hint_reads: HintReads
    prices: ReadPrices | None = None
    prepare_jobs: Callable[[str], None] = lambda _: None
    turns_at_once: int = 1

    def __post_init__(self) -> None:
        objects, buckets = self.objects, self.buckets
        self.metrics_failed: ServiceFailed | None = None
        """Why this delivery reads no further metrics."""
        self.began_at = self.clock.now()
        self.ledger = Ledger(objects, buckets.ledger)
        self.index = Index(objects, buckets.ledger)
        self.drop_statuses = DropStatuses(objects, buckets.ledger)
        self.inbox = Inbox(objects, buckets.inbox)
        self.models = Models(objects)
        self.rule_book = RuleBook(objects, buckets.ledger)
        self.rule_states = RuleStates(objects, buckets.ledger)
        self.rule_statuses = RuleStatuses(objects, buckets.ledger)
        self.arrivals = Arrivals(objects, buckets.ledger)
        self.rule_data = RuleData(objects, buckets.ledger)
        self.watched = WatchedObjects(objects)
        self.champions = Champions(objects, buckets.ledger)
        self.champion_copies = ChampionCopies(objects, buckets.champions)
        self.queue = Queue(objects, buckets.ledger)
        self.slots = Slots(objects, buckets.ledger)
        self.pool_marks = PoolMarks(objects, buckets.ledger)
        self.starts = Starts(objects, buckets.ledger)
        self.retained = Retained(objects, buckets.ledger)
        self.outputs = Removable(objects, buckets.models)
        self.attempts = Attempts(objects, buckets.ledger)
        self.deliveries = Deliveries(objects, buckets.ledger)


@dataclass(frozen=True, kw_only=True)
class FlowResult:
    """One line for the log: what a flow did. Metrics count it by its `event`. `receiver`: of a notice.

    `made_room`: a run ended, so waiting runs may be admitted now. `is_due`: the run waits only for its turn.
    """

    message: str
    run_id: str = ""
    receiver: str = ""
    severity: str = "INFO"
    made_room: bool = False
    is_due: bool = False
    event: LogEvent | None = None
