"""EndpointService: endpoints, the models that are deployed on them, and how traffic is split. Nothing is served.

Source: the comments of google/cloud/aiplatform/v1/endpoint_service.proto, endpoint.proto and machine_resources.proto, read
2026-11. The sentence about unknown ids: https://github.com/GoogleCloudPlatform/java-docs-samples/pull/8475, that about
resources: https://github.com/googleapis/python-aiplatform/issues/773; the others are ours.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.jobs.resource.job import copy_of, new_job_id
from trainstack.jobs.resource.machines import MachineTypes, machine_faults
from trainstack.vertex.resources.handlers import Handler, StandardHandlers, change_of, merged, touched
from trainstack.vertex.resources.methods import message_of
from trainstack.vertex.resources.models import Models
from trainstack.vertex.resources.store import Message, ResourceStore, by_number

_KIND, _COLLECTION = "Endpoint", "endpoints"
_ENDPOINT = message_of(_KIND)
_ID = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?|[1-9][0-9]{0,8}")
_DEPLOYED_ID = re.compile("[0-9]{1,10}")
_CHANGEABLE = frozenset({"display_name", "description", "labels", "traffic_split"})
_NEW = "0"
"""In a traffic split, the model that is being deployed."""
_DEFAULT_MACHINE = "n1-standard-2"
_ALL = 100


class Endpoints:
    """The endpoints of one store. One that changes is stored a second time, as it will be."""

    def __init__(
        self, store: ResourceStore, standard: StandardHandlers, models: Models, machines: MachineTypes
    ) -> None:
        self._store, self._standard, self._models, self._machines = store, standard, models, machines

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "CreateEndpoint": self.create,
            "UpdateEndpoint": self.update,
            "DeleteEndpoint": self.delete,
            "DeployModel": self.deploy,
            "UndeployModel": self.undeploy,
        }

    def create(self, request: Message) -> Message:
        """Raises `ApiError`: INVALID_ARGUMENT with every fault; ALREADY_EXISTS."""
        endpoint, endpoint_id = copy_of(request.endpoint), request.endpoint_id or new_job_id()
        faults = list(_split_faults(endpoint.traffic_split, ()))
        if request.endpoint_id and not _ID.fullmatch(endpoint_id):
            faults.append(f"endpoint_id: expected {_ID.pattern}, found {endpoint_id!r:.200}.")
        if not 0 < len(endpoint.display_name) <= 128:  # noqa: PLR2004 - the message's comment
            faults.append(
                f"endpoint.display_name: expected 1 to 128 characters, found {endpoint.display_name!r:.200}."
            )
        if faults:
            raise InvalidArgumentError(*faults)
        endpoint.name = f"{by_number(request.parent)}/{_COLLECTION}/{endpoint_id}"
        if any(self._store.find(_ENDPOINT, name) for name in (endpoint.name, change_of(endpoint.name))):
            raise ApiError(Status.ALREADY_EXISTS, f"The {_KIND} {endpoint.name} already exists.")
        del endpoint.deployed_models[:]
        endpoint.create_time.GetCurrentTime()
        return self._begin("CreateEndpoint", endpoint, endpoint)

    def update(self, request: Message) -> Message:
        """The endpoint with the fields of the mask, at once.

        Raises:
            ApiError: NOT_FOUND; INVALID_ARGUMENT for a mask with other fields, or a split that is none; ABORTED for the
                etag of an older state; FAILED_PRECONDITION while an operation is under way.
        """
        paths, changes = request.update_mask.paths, request.endpoint
        if not paths or not _CHANGEABLE.issuperset(paths):
            message = f"update_mask: expected some of {', '.join(sorted(_CHANGEABLE))}, found {', '.join(paths)!r:.200}."
            raise InvalidArgumentError(message)
        endpoint = self._unchanging(changes.name)
        if changes.etag not in ("", endpoint.etag):
            raise ApiError(Status.ABORTED, f"{endpoint.name} has changed: its etag is {endpoint.etag!r}.")
        endpoint = merged(endpoint, changes, request.update_mask)
        if faults := list(_split_faults(endpoint.traffic_split, _ids(endpoint))):
            raise InvalidArgumentError(*faults)
        self._store.put(touched(endpoint))
        return endpoint

    def delete(self, request: Message) -> Message:
        """Raises `ApiError`: NOT_FOUND; FAILED_PRECONDITION if a model is deployed, or an operation is under way."""
        endpoint = self._unchanging(request.name)
        if endpoint.deployed_models:
            ids = ", ".join(_ids(endpoint))
            message = f"The {_KIND} {endpoint.name} has deployed models ({ids}); undeploy them first."
            raise ApiError(Status.FAILED_PRECONDITION, message)
        return self._standard.delete(_KIND, request)

    def deploy(self, request: Message) -> Message:
        """The operation after which the model is deployed, with the traffic of the request's split.

        Raises:
            ApiError: NOT_FOUND without the endpoint or the model; INVALID_ARGUMENT with every fault; ALREADY_EXISTS for an
                id that is taken; FAILED_PRECONDITION while another operation is under way.
        """
        endpoint = self._unchanging(request.endpoint)
        deployed, split = copy_of(request.deployed_model), dict(request.traffic_split)
        model = self._models.version(deployed.model)
        faults = [
            *_deployed_faults(deployed, model, self._machines),
            *_split_faults(split, (*_ids(endpoint), _NEW)),
        ]
        if faults:
            raise InvalidArgumentError(*faults)
        deployed.id = deployed.id or new_job_id()[:10]
        if deployed.id in _ids(endpoint):
            message = f"The DeployedModel {deployed.id} already exists on {endpoint.name}."
            raise ApiError(Status.ALREADY_EXISTS, message)
        resources = deployed.dedicated_resources
        resources.max_replica_count = resources.max_replica_count or resources.min_replica_count
        deployed.model, deployed.model_version_id = model.name, model.version_id
        deployed.display_name = deployed.display_name or model.display_name
        deployed.create_time.GetCurrentTime()
        endpoint.deployed_models.append(deployed)
        if split:
            _set_split(endpoint, {(deployed.id if key == _NEW else key): part for key, part in split.items()})
        self._models.refer(model, [*model.deployed_models, self._reference(endpoint, deployed)])
        return self._begin(
            "DeployModel", endpoint, message_of("DeployModelResponse")(deployed_model=deployed)
        )

    def undeploy(self, request: Message) -> Message:
        """The operation after which the model is no longer deployed.

        Raises:
            ApiError: NOT_FOUND without the endpoint, or the model on it; INVALID_ARGUMENT for a split that is none;
                FAILED_PRECONDITION if it has traffic, and is not the last, or while another operation is under way.
        """
        endpoint, gone = self._unchanging(request.endpoint), request.deployed_model_id
        found = [one for one in endpoint.deployed_models if one.id == gone]
        kept = [one for one in endpoint.deployed_models if one.id != gone]
        if not found:
            raise ApiError(
                Status.NOT_FOUND, f"The DeployedModel {gone!r:.80} does not exist on {endpoint.name}."
            )
        if faults := list(_split_faults(request.traffic_split, _ids(endpoint))):
            raise InvalidArgumentError(*faults)
        split = dict(request.traffic_split or endpoint.traffic_split) if kept else {}
        if split.pop(gone, 0):
            message = (
                f"The DeployedModel {gone} has traffic; give it to another one, by update or traffic_split."
            )
            raise ApiError(Status.FAILED_PRECONDITION, message)
        del endpoint.deployed_models[:]
        endpoint.deployed_models.extend(kept)
        _set_split(endpoint, split)
        return self._begin("UndeployModel", endpoint, message_of("UndeployModelResponse")())

    def settle(self) -> None:
        """End the changes that had their time."""
        for endpoint in self._standard.settled(_ENDPOINT, _COLLECTION):
            before = self._store.find(_ENDPOINT, endpoint.name) or _ENDPOINT()
            self._store.put(endpoint)
            for gone in (one for one in before.deployed_models if one.id not in _ids(endpoint)):
                model = self._models.version(f"{gone.model}@{gone.model_version_id}")
                kept = [one for one in model.deployed_models if one != self._reference(endpoint, gone)]
                self._models.refer(model, kept)
            self._standard.end(endpoint.name)

    def _unchanging(self, name: str) -> Message:
        """Raises `ApiError`: NOT_FOUND; FAILED_PRECONDITION while an operation is under way."""
        endpoint = self._store.get(_ENDPOINT, by_number(name))
        if under_way := self._store.links_of(change_of(endpoint.name)):
            message = f"Another operation is under way on {endpoint.name}: {', '.join(under_way)}."
            raise ApiError(Status.FAILED_PRECONDITION, message)
        return endpoint

    def _begin(self, method: str, endpoint: Message, response: Message) -> Message:
        self._store.put(touched(endpoint), change_of(endpoint.name))
        return self._standard.begin(method, response, at=endpoint.name, below=endpoint.name)

    @staticmethod
    def _reference(endpoint: Message, deployed: Message) -> Message:
        return message_of("DeployedModelRef")(endpoint=endpoint.name, deployed_model_id=deployed.id)


def _ids(endpoint: Message) -> list[str]:
    return [deployed.id for deployed in endpoint.deployed_models]


def _set_split(endpoint: Message, split: Mapping[str, int]) -> None:
    endpoint.ClearField("traffic_split")
    endpoint.traffic_split.update(split)


def _split_faults(split: Mapping[str, int], known: Iterable[str]) -> Iterator[str]:
    """One sentence for each fault of a traffic split, which may be empty."""
    if unknown := sorted(set(split) - set(known)):
        yield f"The following DeployedModel ID(s) [{', '.join(unknown)}] do not exist."
    if split and (sum(split.values()) != _ALL or min(split.values()) < 0):
        yield f"traffic_split: expected percentages that sum to {_ALL}, found {dict(split)!r:.200}."


def _deployed_faults(deployed: Message, model: Message, machines: MachineTypes) -> Iterator[str]:
    """One sentence for each fault of a DeployedModel."""
    path, kind = "deployed_model", deployed.WhichOneof("prediction_resources")
    if kind != "dedicated_resources" or not model.container_spec.image_uri:
        yield f"'{kind}' is not supported for Model {model.name}."
        return
    if deployed.id and not _DEPLOYED_ID.fullmatch(deployed.id):
        yield f"{path}.id: expected {_DEPLOYED_ID.pattern}, found {deployed.id!r:.80}."
    resources = deployed.dedicated_resources
    least, most = resources.min_replica_count, resources.max_replica_count
    if least < 1 or (most and most < least):
        yield f"{path}.dedicated_resources: expected 1 <= min_replica_count <= max_replica_count, found {least} and {most}."
    # The stack's table has the machines of training jobs; those that only serve have other accelerators or none.
    name = resources.machine_spec.machine_type = resources.machine_spec.machine_type or _DEFAULT_MACHINE
    known = {name: machines[name]} if name in machines else {}
    yield from machine_faults(resources.machine_spec, f"{path}.dedicated_resources.machine_spec", known)
