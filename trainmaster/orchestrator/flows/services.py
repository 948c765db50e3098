"""The ports and the deployment's values, which every flow receives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trainmaster.orchestrator.core.admission.cost import ReadPrices
from trainmaster.orchestrator.core.names import Buckets
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.requests.submission import Target
from trainmaster.orchestrator.flows.process_memory import HintReads
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.ports.services import Clock, JobLogs, Notices, TrainingJobs
from trainmaster.orchestrator.stores.admission import Queue, Slots, Starts
from trainmaster.orchestrator.stores.arrivals import Arrivals
from trainmaster.orchestrator.stores.attempts import Attempts
from trainmaster.orchestrator.stores.champions import ChampionCopies, Champions
from trainmaster.orchestrator.stores.inbox import Inbox, Models
from trainmaster.orchestrator.stores.ledger import Ledger
from trainmaster.orchestrator.stores.rule_data import RuleData, WatchedObjects
from trainmaster.orchestrator.stores.rules import RuleBook, RuleStates, RuleStatuses
from trainmaster.orchestrator.stores.self_tests import SelfTests
from trainmaster.orchestrator.stores.views import DropStatuses, Index


@dataclass(frozen=True, kw_only=True)
class Services:
    """The ports, the deployment, and the `attempt` of this delivery: random text from the entry point.

    `began_at`, `timeout`: when the function began, and how long it may take. `turns_at_once`: rules that get their turn
    in parallel. `prepare_jobs` does what a region needs before a submission can be sent. `request_rules`, `prices` and
    `export_schema` are read when first needed: a duplicate upload needs none of them.
    """

    ledger: Ledger
    index: Index
    drop_statuses: DropStatuses
    inbox: Inbox
    models: Models
    jobs: TrainingJobs
    job_logs: JobLogs
    hint_reads: HintReads
    notices: Notices
    clock: Clock
    target: Target
    lease: timedelta
    request_rules: Callable[[], RequestRules]
    prices: ReadPrices | None
    export_schema: Callable[[], Mapping[str, Any]]
    attempt: str
    buckets: Buckets
    self_tests: SelfTests
    rule_book: RuleBook
    rule_states: RuleStates
    rule_statuses: RuleStatuses
    arrivals: Arrivals
    rule_data: RuleData
    watched: WatchedObjects
    champions: Champions
    champion_copies: ChampionCopies
    queue: Queue
    slots: Slots
    starts: Starts
    prepare_jobs: Callable[[str], None]
    attempts: Attempts
    began_at: datetime
    timeout: timedelta
    turns_at_once: int


@dataclass(frozen=True, kw_only=True)
class FlowResult:
    """One line for the log: what a flow did. Metrics count it by its `event`.

    `made_room`: a run ended, so waiting runs may be admitted now. `is_due`: the run waits only for its turn.
    """

    message: str
    run_id: str = ""
    severity: str = "INFO"
    made_room: bool = False
    is_due: bool = False
    event: LogEvent | None = None
