"""ModelService: models, their versions and aliases.

Source: https://cloud.google.com/vertex-ai/docs/model-registry/versioning and .../model-alias, and the comments of the
google.cloud.aiplatform.v1 messages, read 2026-11. That missing files are refused, and in which words:
https://github.com/GoogleCloudPlatform/vertex-ai-samples/pull/1165, .../issues/3710; the names that a prebuilt container
takes: https://cloud.google.com/vertex-ai/docs/training/exporting-model-artifacts
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from google.protobuf import empty_pb2

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.jobs.resource.job import copy_of, new_job_id
from trainstack.vertex.resources.handlers import Handler, StandardHandlers, change_of, merged, touched
from trainstack.vertex.resources.methods import message_of
from trainstack.vertex.resources.store import Message, ResourceStore, by_number

DEFAULT = "default"
_MODEL = message_of("Model")
_ID = re.compile(r"[a-z_][a-z0-9_-]{0,62}|[0-9]{1,19}")
_OF_MODEL = frozenset({"display_name", "description", "labels"})
_OF_VERSION = frozenset({"version_description", "labels"})
_PREBUILT = re.compile(r"(us|europe|asia)-docker\.pkg\.dev/vertex-ai/prediction/(?P<framework>[a-z]+)")
_FILES = {
    "sklearn": ("model.pkl", "model.joblib"),
    "xgboost": ("model.pkl", "model.joblib", "model.bst"),
    "tf": ("saved_model.pb", "saved_model.pbtxt"),
}
"""Of each framework's prebuilt containers, the files of which the model's folder has one."""
_ALIAS = re.compile(r"[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]")


class Models:
    """Each version is a resource `MODEL@VERSION` of the store; the default one stands for the model in lists."""

    def __init__(self, store: ResourceStore, standard: StandardHandlers, buckets: Path) -> None:
        """`buckets` has each bucket as a folder."""
        self._store, self._standard, self._buckets = store, standard, buckets

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "UploadModel": self.upload,
            "GetModel": lambda request: self.version(request.name),
            "ListModels": self.list_models,
            "ListModelVersions": self.list_versions,
            "UpdateModel": self.update,
            "MergeVersionAliases": self.merge_aliases,
            "DeleteModel": self.delete,
            "DeleteModelVersion": self.delete_version,
        }

    def upload(self, request: Message) -> Message:
        """The operation that adds a model, or with `parent_model` a version of one; `settle` ends it.

        Raises:
            ApiError: as `new_version`.
        """
        model = self.new_version(request)
        response = message_of("UploadModelResponse")(model=model.name, model_version_id=model.version_id)
        key = _key_of(model)
        self._store.put(touched(model), change_of(key))
        return self._standard.begin("UploadModel", response, at=key, below=model.name)

    def settle(self) -> None:
        """End the uploads that had their time."""
        for model in self._standard.settled(_MODEL, "models"):
            self.add(model)
            self._standard.end(_key_of(model))

    def new_version(self, request: Message) -> Message:
        """The version that the request asks for, with its number; it is not added yet.

        Raises:
            ApiError: INVALID_ARGUMENT, ALREADY_EXISTS, NOT_FOUND; FAILED_PRECONDITION if its files are missing.
        """
        parent, model = by_number(request.parent), copy_of(request.model)
        model_id = (
            request.parent_model.rpartition("/")[2].partition("@")[0] or request.model_id or new_job_id()
        )
        if faults := list(_faults(model, model_id)):
            raise InvalidArgumentError(*faults)
        if model.artifact_uri:
            self._require_files(model)
        model.name = f"{parent}/models/{model_id}"
        last = int(self._store.links_of(model.name).get("last", b"0"))
        if request.parent_model and not self._versions(model.name):
            raise _missing(model.name)
        if last and not request.parent_model:
            raise ApiError(Status.ALREADY_EXISTS, f"The Model {model.name} already exists.")
        model.version_id = str(last + 1)
        self._store.link(model.name, "last", model.version_id.encode())
        model.version_create_time.GetCurrentTime()
        if model.container_spec.image_uri:
            model.supported_deployment_resources_types[:] = [_MODEL.DEDICATED_RESOURCES]
        return model

    def add(self, model: Message) -> None:
        """Save a new version, with its aliases, which others lose."""
        versions = self._versions(model.name)
        model.create_time.CopyFrom(versions[-1].create_time if versions else model.version_create_time)
        aliases = [*model.version_aliases, *([] if versions else [DEFAULT])]
        self._put_aliases(model, dict.fromkeys(aliases), versions)

    def list_models(self, request: Message) -> Message:
        all_versions = self._store.under(_MODEL, f"{by_number(request.parent)}/models")
        models = [model for model in all_versions if DEFAULT in model.version_aliases]
        return self._standard.page(request, models)

    def list_versions(self, request: Message) -> Message:
        name = by_number(request.name).partition("@")[0]
        return self._standard.page(request, self._versions(name)[::-1] or [self.version(name)])

    def update(self, request: Message) -> Message:
        """`MODEL` changes every version, `MODEL@VERSION` that one, in the fields that each may change.

        Raises:
            ApiError: NOT_FOUND; INVALID_ARGUMENT for a mask with other fields; ABORTED for the etag of an older state.
        """
        name, _, version = request.model.name.partition("@")
        allowed = _OF_VERSION if version not in ("", "-") else _OF_MODEL
        if not request.update_mask.paths or not allowed.issuperset(request.update_mask.paths):
            found = ", ".join(request.update_mask.paths)
            message = f"update_mask: expected some of {', '.join(sorted(allowed))}, found {found!r}."
            raise InvalidArgumentError(message)
        asked = self.version(name if version == "-" else request.model.name)
        if request.model.etag not in ("", asked.etag):
            raise ApiError(Status.ABORTED, f"{asked.name} has changed: its etag is {asked.etag!r}.")
        for model in self._versions(asked.name) if allowed is _OF_MODEL else [asked]:
            self._put(merged(model, request.model, request.update_mask))
        return self.version(f"{asked.name}@{asked.version_id}")

    def merge_aliases(self, request: Message) -> Message:
        """Add aliases, which other versions lose, and remove those with a leading `-`."""
        model = self.version(request.name)
        removed = {alias[1:] for alias in request.version_aliases if alias.startswith("-")}
        added = [alias for alias in request.version_aliases if not alias.startswith("-")]
        if DEFAULT in removed:
            raise InvalidArgumentError("The alias 'default' can only be moved to another version.")
        kept = [alias for alias in model.version_aliases if alias not in removed]
        return self._put_aliases(model, dict.fromkeys([*kept, *added]), self._versions(model.name))

    def delete(self, request: Message) -> Message:
        name = by_number(request.name)
        models = self._versions(name) or [self.version(name)]
        for model in models:
            _refuse_deployed(model)
        for model in models:
            self._store.remove(_key_of(model))
        self._store.remove(name)
        return self._standard.done("Delete", empty_pb2.Empty(), parent=name)

    def delete_version(self, request: Message) -> Message:
        model = self.version(request.name)
        _refuse_deployed(model)
        if DEFAULT in model.version_aliases:
            raise ApiError(
                Status.FAILED_PRECONDITION,
                f"{_key_of(model)} is the default version; make another one the default, or delete the model.",
            )
        self._store.remove(_key_of(model))
        return self._standard.done("Delete", empty_pb2.Empty(), parent=model.name)

    def _require_files(self, model: Message) -> None:
        folder = self._buckets / model.artifact_uri.removeprefix("gs://")
        if ".." in folder.parts or not any(path.is_file() for path in folder.rglob("*")):
            message = f'There are no files under "{model.artifact_uri}" to copy.'
            raise ApiError(Status.FAILED_PRECONDITION, message)
        prebuilt = _PREBUILT.match(model.container_spec.image_uri)
        names = _FILES.get(prebuilt["framework"], ()) if prebuilt else ()
        if names and sum((folder / name).is_file() for name in names) != 1:
            message = f"Model directory {model.artifact_uri} is expected to contain exactly one of: [{', '.join(names)}]."
            raise ApiError(Status.FAILED_PRECONDITION, message)

    def refer(self, model: Message, deployments: Iterable[Message]) -> None:
        """Save the version with other references to where it is deployed."""
        model.ClearField("deployed_models")
        model.deployed_models.extend(deployments)
        self._store.put(model, _key_of(model))

    def version(self, name: str) -> Message:
        """Of `MODEL`, the default version, of `MODEL@2` and `MODEL@alias` the one named.

        Raises:
            ApiError: NOT_FOUND.
        """
        model_name, _, version = by_number(name).partition("@")
        for model in self._versions(model_name):
            if (version or DEFAULT) in (model.version_id, *model.version_aliases):
                return model
        raise _missing(name)

    def _versions(self, name: str) -> list[Message]:
        """Newest first."""
        models = self._store.under(_MODEL, name.rpartition("/")[0])
        return [model for model in models if model.name == name]

    def _put_aliases(self, model: Message, aliases: Iterable[str], versions: Iterable[Message]) -> Message:
        """Save the version with these aliases, and without them every other one."""
        names = list(aliases)
        if faults := [alias for alias in names if not _ALIAS.fullmatch(alias)]:
            raise InvalidArgumentError(f"version_aliases: expected {_ALIAS.pattern}, found {faults!r:.200}.")
        for other in versions:
            if other.version_id != model.version_id and not set(names).isdisjoint(other.version_aliases):
                other.version_aliases[:] = [alias for alias in other.version_aliases if alias not in names]
                self._put(other)
        model.version_aliases[:] = names
        self._put(model)
        return model

    def _put(self, model: Message) -> None:
        touched(model)
        model.version_update_time.CopyFrom(model.update_time)
        self._store.put(model, _key_of(model))


def _key_of(model: Message) -> str:
    """Under which name the store has the version."""
    return f"{model.name}@{model.version_id}"


def _refuse_deployed(model: Message) -> None:
    if endpoints := ", ".join(each.endpoint for each in model.deployed_models):
        message = f"{_key_of(model)} is deployed on {endpoints}; undeploy it first."
        raise ApiError(Status.FAILED_PRECONDITION, message)


def _faults(model: Message, model_id: str) -> Iterable[str]:
    if not model.display_name or len(model.display_name) > 128:  # noqa: PLR2004 - the message's comment
        yield f"model.display_name: expected 1 to 128 characters, found {model.display_name!r:.200}."
    if not _ID.fullmatch(model_id):
        yield f"model_id: expected {_ID.pattern}, found {model_id!r:.200}."
    if model.artifact_uri and not model.artifact_uri.startswith("gs://"):
        yield f"model.artifact_uri: expected gs://BUCKET/PATH, found {model.artifact_uri!r:.200}."


def _missing(name: str) -> ApiError:
    return ApiError(Status.NOT_FOUND, f"The Model {name} does not exist.")
