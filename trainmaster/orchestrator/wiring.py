"""Builds the adapters once from the settings. Nothing is imported or called before it is needed."""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar, cast

from trainmaster.orchestrator.adapters.clock import SystemClock
from trainmaster.orchestrator.adapters.cloud_logging import CloudJobLogs
from trainmaster.orchestrator.adapters.gcs import GcsObjects
from trainmaster.orchestrator.adapters.model_registry import VertexModels
from trainmaster.orchestrator.adapters.monitoring import CloudMachineMetrics
from trainmaster.orchestrator.adapters.pubsub import PubsubNotices
from trainmaster.orchestrator.adapters.receivers import InternetReceivers
from trainmaster.orchestrator.adapters.vertex import VertexJobs
from trainmaster.orchestrator.core.admission.cost import currency_problem
from trainmaster.orchestrator.core.admission.prices import Prices, prices_from
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.errors import PolicyInvalid
from trainmaster.orchestrator.core.notices.notice import notice_source
from trainmaster.orchestrator.core.orders.order import ORDER_SCHEMA
from trainmaster.orchestrator.core.policy.policy import Policy, policy_from
from trainmaster.orchestrator.core.requests.request import REQUEST_SCHEMA, RequestRules
from trainmaster.orchestrator.core.retraining.reading import RULE_SCHEMA
from trainmaster.orchestrator.flows.process_memory import HintReads
from trainmaster.orchestrator.flows.services import Services
from trainmaster.orchestrator.settings import Settings
from trainmaster.orchestrator.stores.arrivals import ArrivalLog
from trainmaster.partial_import import IMPORTING

TURNS_AT_ONCE = 10
"""As many as the storage client's connection pool holds."""

_Parsed = TypeVar("_Parsed")


class Wiring:
    """The adapters of one process: Google's services."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        target, vertex = settings.target, settings.vertex_endpoint
        self._objects, self._clock = GcsObjects(target.project), SystemClock()
        self._jobs = VertexJobs(project=target.project, endpoint=vertex, deployment=target.deployment)
        self._job_logs = CloudJobLogs(project=target.project, endpoint=settings.logging_endpoint)
        self._models = VertexModels(project=target.project, region=target.region, endpoint=vertex)
        self._metrics = CloudMachineMetrics(project=target.project, endpoint=settings.monitoring_endpoint)
        self._notices = PubsubNotices(
            project=target.project,
            topic=settings.notices_topic,
            source=notice_source(target.project, target.region, target.deployment),
        )
        self._hint_reads = HintReads(self._clock)
        self.receivers = InternetReceivers(secrets=settings.secrets_dir, loopback=settings.loopback_receiver)
        self.arrival_log = ArrivalLog(self._objects, settings.buckets.ledger, self._clock)

    def services(self) -> Services:
        """The ports for one delivery, with a new `attempt`."""
        return Services(
            objects=self._objects,
            jobs=self._jobs,
            job_logs=self._job_logs,
            model_registry=self._models,
            machine_metrics=self._metrics,
            notices=self._notices,
            clock=self._clock,
            target=self.settings.target,
            buckets=self.settings.buckets,
            lease=self.settings.lease,
            timeout=self.settings.function_timeout,
            attempt=secrets.token_hex(8),
            request_rules=lambda: replace(self._request_rules, today=self._clock.now().date()),
            policy=self._policy,
            prices=lambda: self._prices,
            export_schema=lambda: self._schema("model_export.v1"),
            hint_reads=self._hint_reads,
            prepare_jobs=self._jobs.prepare,
            turns_at_once=TURNS_AT_ONCE,
        )

    @cached_property
    def _request_rules(self) -> RequestRules:
        """What requests are checked against.

        Raises:
            PolicyInvalid: the policy file cannot be used; events are redelivered until it is fixed.
        """
        names, today = self.settings.names, self._clock.now().date()
        with IMPORTING:  # the first use of a schema imports its validator
            return RequestRules(
                schemas={name: self._schema(name) for name in (RULE_SCHEMA, ORDER_SCHEMA, REQUEST_SCHEMA)},
                policy=self._parse_file(
                    self.settings.policy_path, "policy.v1", partial(policy_from, names=names)
                ),
                region=self.settings.target.region,
                today=today,
                names=names,
            )

    def _policy(self) -> Policy:
        return cast("Policy", self._request_rules.policy)

    @cached_property
    def _prices(self) -> Prices:
        """The price table.

        Raises:
            PolicyInvalid: the price table cannot be used, or uses another currency than the policy's caps.
        """
        prices = self._parse_file(self.settings.prices_path, "prices.v1", prices_from)
        problem = currency_problem(self._policy().admission.caps, prices)
        if problem is not None:
            raise PolicyInvalid(str(self.settings.prices_path), (problem,))
        return prices

    # Any: the schema validates the types.
    def _parse_file(self, path: Path, schema_id: str, parse: Callable[[Any], _Parsed]) -> _Parsed:
        """What `parse` makes of the file, once its schema has accepted it.

        Raises:
            PolicyInvalid: the file cannot be read, or its schema refuses it.
        """
        try:
            read = parse_document(path.read_bytes(), as_json=False, what=path.name)
            faults = [*read.faults, *schema_faults(self._schema(schema_id), read.value, read.spelled)]
            if not faults:
                return parse(read.value)
        except (OSError, ValueError) as error:
            raise PolicyInvalid(str(path), (str(error),)) from error
        raise PolicyInvalid(str(path), tuple(str(fault) for fault in faults))

    def _schema(self, schema_id: str) -> Mapping[str, Any]:
        path = self.settings.schemas_dir / f"{schema_id}.schema.json"
        schema: dict[str, Any] = json.loads(path.read_bytes())
        return schema
