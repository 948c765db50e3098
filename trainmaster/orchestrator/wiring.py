"""Builds the adapters once from the settings. Nothing is imported or called before it is needed."""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

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
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.orchestrator.core.requests.request import REQUEST_SCHEMA, RequestRules
from trainmaster.orchestrator.core.retraining.reading import RULE_SCHEMA
from trainmaster.orchestrator.flows.process_memory import HintReads
from trainmaster.orchestrator.flows.services import Adapters, Services
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
        target, clock = settings.target, SystemClock()
        objects = GcsObjects(target.project)
        self._jobs = VertexJobs(
            project=target.project,
            endpoint=settings.vertex_endpoint,
            deployment=target.deployment,
        )
        notices = PubsubNotices(
            project=target.project,
            topic=settings.notices_topic,
            source=notice_source(target.project, target.region, target.deployment),
        )
        self._adapters = Adapters(
            objects=objects,
            jobs=self._jobs,
            job_logs=CloudJobLogs(project=target.project, endpoint=settings.logging_endpoint),
            model_registry=VertexModels(
                project=target.project, region=target.region, endpoint=settings.vertex_endpoint
            ),
            machine_metrics=CloudMachineMetrics(
                project=target.project, endpoint=settings.monitoring_endpoint
            ),
            notices=notices,
            clock=clock,
        )
        self._hint_reads = HintReads(clock)
        self.receivers = InternetReceivers(secrets=settings.secrets_dir, loopback=settings.loopback_receiver)
        self.arrival_log = ArrivalLog(objects, settings.buckets.ledger, clock)

    def services(self) -> Services:
        """The ports for one delivery, with a new `attempt`."""
        return Services(
            self._adapters,
            target=self.settings.target,
            buckets=self.settings.buckets,
            lease=self.settings.lease,
            timeout=self.settings.function_timeout,
            attempt=secrets.token_hex(8),
            request_rules=lambda: replace(self._request_rules, today=self._adapters.clock.now().date()),
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
        names, today = self.settings.names, self._adapters.clock.now().date()
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

    @cached_property
    def _prices(self) -> Prices:
        """The price table.

        Raises:
            PolicyInvalid: the price table cannot be used, or uses another currency than the policy's caps.
        """
        prices = self._parse_file(self.settings.prices_path, "prices.v1", prices_from)
        policy = self._request_rules.policy
        problem = None if policy is None else currency_problem(policy.admission.caps, prices)
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
