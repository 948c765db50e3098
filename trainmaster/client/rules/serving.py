"""Registered versions on Vertex AI's endpoints, with the caller's own rights: what would change, its cost, the change.

What cannot be is refused in one sentence, by `ClientRefused`, or `NotFound` for a model or endpoint that does not exist;
the official client's errors pass.
"""

import hashlib
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any  # Any: proto-plus messages, which are untyped

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused
from trainmaster.client.machines import shipped_machines
from trainmaster.client.rules.champions import find_champion
from trainmaster.client.submission.terms import deployed_policy
from trainmaster.orchestrator.core.admission.cost import HOURS_PER_MONTH
from trainmaster.orchestrator.core.admission.prices import Prices, series_of
from trainmaster.orchestrator.core.champions.registration import ALIAS
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.job_names import location_name
from trainmaster.orchestrator.core.names import RUN_LABEL, registry_model_id
from trainmaster.orchestrator.core.requests.gpus import choose_machine

_ALL, _CALL_S = 100, 60.0
_ENDPOINT_ID = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?|[1-9][0-9]{0,18}")
_MIN_ID = 10**9  # ten digits


class ServingEndpoint:
    """An endpoint in the deployment's region, by default the model's, and one planned change of it; at first none."""

    def __init__(self, clients: Clients, model: str, endpoint_id: str | None) -> None:
        """Reads it. Refused while an operation is under way, or where the default endpoint serves another model."""
        from google.api_core.exceptions import NotFound

        self._clients, self._model, self._service = clients, model, clients.vertex("endpoint_service")
        from google.cloud.aiplatform_v1.types.endpoint import Endpoint  # `vertex` loads only parts

        team, _, name = model.rpartition("/")
        self._model_id = registry_model_id(name, team or clients.context.team, clients.context.deployment)
        self._place = location_name(clients.context.project, clients.context.region)
        self.id = endpoint_id or default_endpoint(self._model_id)
        if not _ENDPOINT_ID.fullmatch(self.id):
            raise ClientRefused(f"{self.id!r} cannot be an endpoint: a letter, then up to 62 of a-z, 0-9, -.")
        self._found = Endpoint(name=f"{self._place}/endpoints/{self.id}")
        try:
            self._found = self._service.get_endpoint(name=self._found.name)
            operations = self._service.list_operations({"name": self._found.name}).operations
        except NotFound:
            if self.id.isdecimal():
                raise  # the service chose this id
            operations = []
        self.last_failure = failure_of_last_deployment(operations)
        if under_way := next((each.name for each in operations if not each.done), ""):
            raise ClientRefused(f"{under_way} is under way, in the cloud for 10 to 40 minutes: repeat later.")
        served = {each.model.rpartition("/")[2].partition("@")[0] for each in self._found.deployed_models}
        if (others := served - {self._model_id}) and not endpoint_id:
            raise ClientRefused(f"{self.id} serves {min(others)}; choose the endpoint: --endpoint {self.id}.")
        self._before = {key: part for key, part in self._found.traffic_split.items() if part}
        self._after, self._added, self._gone = self._before, list[Any](), list[str]()

    @cached_property
    def _prices(self) -> Prices:
        return deployed_policy(self._clients)[1]

    def plan_deployment(self, *, version: int | None, share: int | None, **machines: Any) -> None:
        """Give a version, None for that with the alias, this percentage of the traffic, all by default.

        Deploy it first if it is not.

        Its id derives from that of its run, so a run is never deployed twice. `machines`: those of `resources_from`.
        """
        from google.cloud.aiplatform_v1.types.endpoint import DeployedModel

        share = share or _ALL
        found, resources = self._find_version(version), resources_from(**machines)
        name = f"{found.name.partition('@')[0]}@{found.version_id}"
        digest = hashlib.sha256((found.labels.get(RUN_LABEL) or name).encode()).hexdigest()
        new = DeployedModel(id=str(_MIN_ID + int(digest, 16) % (9 * _MIN_ID)), model=name)
        new.model_version_id, new.dedicated_resources = found.version_id, resources
        present = [each for each in self._found.deployed_models if each.id == new.id]
        shapes = {(row["machine"], row["replicas"]) for row in map(self._row, [new, *present])}
        if any(machines.values()) and len(shapes) > 1:
            raise ClientRefused(f"{new.model} is deployed on other machines; undeploy it first.")
        if share < _ALL and not self._before.keys() - {new.id}:
            raise ClientRefused(f"Nothing else on {self.id} takes the other {_ALL - share} % of the traffic.")
        self._after = split_with(self._before, new.id, share)
        self._added = [] if present else [new]

    def plan_return(self) -> None:
        """Give all traffic to the model that was deployed before the newest one that has traffic."""
        ordered = [each.id for each in sorted(self._found.deployed_models, key=lambda each: each.create_time)]
        current = max((ordered.index(each) for each in self._before), default=0)
        if current == 0:
            raise ClientRefused(
                f"On {self.id} no model was deployed before the newest one that has traffic; name one: --version."
            )
        self._after = {ordered[current - 1]: _ALL}

    def plan_removal(self, *, every: bool) -> None:
        """Undeploy the models without traffic, or every one."""
        self._gone = [each.id for each in self._found.deployed_models if every or each.id not in self._before]

    @property
    def document(self) -> dict[str, Any]:
        """Each model that is deployed or added, and `per_month` at least: a `Decimal`, None if a price is unknown."""
        models = [self._row(each) for each in (*self._found.deployed_models, *self._added)]
        costs = [each["per_month"] for each in models if each["traffic_after"] is not None]
        return {
            "endpoint": self._found.name,
            "changes": bool(self._added or self._gone or self._after != self._before),
            "currency": self._prices.currency,
            "per_month": None if None in costs else sum(costs, Decimal(0)),
            "models": models,
        }

    def _row(self, model: Any) -> dict[str, Any]:
        resources, table = model.dedicated_resources, self._prices.table(self._clients.context.region)
        spec, least, most = resources.machine_spec, resources.min_replica_count, resources.max_replica_count
        machine, kind, count = spec.machine_type, spec.accelerator_type.name, spec.accelerator_count
        parts = [table.machine(machine)]
        parts += [] if table.is_whole(machine) else [table.accelerators.get(kind)] * count
        hourly = None if None in parts else sum(filter(None, parts), Decimal(0))
        return {
            "id": model.id,
            "version": f"{model.model.rpartition('/')[2].partition('@')[0]}@{model.model_version_id}",
            "machine": f"{machine} with {count} {kind}" if count else machine,
            "replicas": f"{least}" if least == most else f"{least} to {most}",
            "traffic": self._before.get(model.id, 0),
            "traffic_after": None if model.id in self._gone else self._after.get(model.id, 0),
            "per_month": None if hourly is None else hourly * least * HOURS_PER_MONTH,
        }

    def apply(self) -> Any:
        """Make the change; the operation that deploys a model, or None. Waits for models that go."""
        name, ordered = self._found.name, sorted(self._gone, key=lambda each: self._before.get(each, 0))
        for gone in ordered:
            split = {ordered[-1]: _ALL} if gone in self._before and gone != ordered[-1] else {}
            request = {"endpoint": name, "deployed_model_id": gone, "traffic_split": split}
            self._service.undeploy_model(request=request, timeout=_CALL_S).result(timeout=None)
        if self._added:
            if not self._found.etag:
                made = {"parent": self._place, "endpoint_id": self.id, "endpoint": {"display_name": self.id}}
                self._service.create_endpoint(request=made, timeout=_CALL_S).result()
            (new,) = self._added
            split = {"0" if key == new.id else key: part for key, part in self._after.items()}
            return self._service.deploy_model(
                endpoint=name, deployed_model=new, traffic_split=split, timeout=_CALL_S
            )
        if self._after != self._before:
            endpoint = {"name": name, "traffic_split": self._after, "etag": self._found.etag}
            self._service.update_endpoint(endpoint=endpoint, update_mask={"paths": ["traffic_split"]})
        return None

    def _find_version(self, version: int | None) -> Any:
        from google.api_core.exceptions import NotFound

        name, wanted = f"{self._place}/models/{self._model_id}", f"{self._model}@{version or ALIAS}"
        try:
            found = self._clients.vertex("model_service").get_model(name=f"{name}@{version or ALIAS}")
        except NotFound as missing:
            find_champion(self._clients, self._model)  # of an unknown model it says which is meant
            raise ClientRefused(f"{wanted} is not registered; see the policy's `registry`.") from missing
        if not found.container_spec.image_uri:
            raise ClientRefused(f"{wanted} has no container image: the policy's `registry.serving` sets it.")
        return found


def failure_of_last_deployment(operations: Iterable[Any]) -> str:
    """Why the newest operation that deployed a model failed; empty if it did not, or no operation did."""
    from google.cloud.aiplatform_v1.types.endpoint_service import DeployModelOperationMetadata as Deploying

    of_deployments = (
        each for each in operations if each.metadata.type_url.endswith(f".{Deploying.__name__}")
    )
    begun = [(Deploying.deserialize(each.metadata.value), each) for each in of_deployments]
    timed = [pair for pair in begun if pair[0].generic_metadata.create_time is not None]
    newest = max(timed, key=lambda pair: pair[0].generic_metadata.create_time, default=None)
    return str(newest[1].error.message) if newest is not None else ""


def default_endpoint(model_id: str) -> str:
    """The endpoint's id for that of the model: the same, or, as no `_` is allowed, with `-` for each and a hash at the end."""
    if "_" not in model_id:
        return model_id
    return f"{model_id.replace('_', '-')[:52]}-{hashlib.sha256(model_id.encode()).hexdigest()[:10]}"


def split_with(before: dict[str, int], new: str, share: int) -> dict[str, int]:
    """The traffic, in percent, when `new` has exactly this share, and the others theirs of the rest: 100 in all.

    What rounding leaves is the largest other's. With a share under 100, `before` must have another.
    """
    others = {key: part for key, part in before.items() if key != new}
    after = {key: (_ALL - share) * part // sum(others.values()) for key, part in others.items()}
    if others:
        after[max(others, key=others.__getitem__)] += _ALL - share - sum(after.values())
    return {key: part for key, part in {**after, new: share}.items() if part}


def resources_from(*, machine: str | None, gpu: str | None, least: int | None, most: int | None) -> Any:
    """DedicatedResources; `gpu` is `L4:1`, and chooses the machine where none is named."""
    known = shipped_machines()
    if not gpu and any(row.accelerator_required for row in known if machine in row.types):
        raise ClientRefused(f"{machine} has accelerators; name them too, such as --accelerator L4:1.")
    chosen = choose_machine(gpu, known, machine=machine) if gpu else None
    if isinstance(chosen, Fault):
        raise ClientRefused(f"--accelerator: {chosen}")
    name = chosen.machine if chosen else machine or "n1-standard-2"
    series, size = series_of(name)
    content = Path(__file__).with_name("serving_machines.yaml").read_bytes()
    table: Any = parse_document(content, as_json=False).value
    if size not in table.get(series, ()):
        raise ClientRefused(f"No machine of type {name!r} serves models; n1-standard-2 is one that does.")
    if most is not None and most < (least or 1):
        raise ClientRefused(f"--max {most} is less than --min {least}.")
    spec = {f"accelerator_{key}": value for key, value in vars(chosen.accelerator).items()} if chosen else {}
    replicas = {"min_replica_count": least or 1, "max_replica_count": most or least or 1}
    return {"machine_spec": {"machine_type": name, **spec}, **replicas}
