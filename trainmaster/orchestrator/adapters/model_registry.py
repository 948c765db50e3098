"""Vertex AI's Model Registry, through the generated ModelServiceClient over REST, in the deployment's region."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainmaster.orchestrator.adapters.refusals import SERVICE, api_errors, failures_of
from trainmaster.orchestrator.adapters.vertex_clients import TIMEOUT_S, RegionalClients
from trainmaster.orchestrator.core.champions.registration import ModelUpload, ModelVersion
from trainmaster.orchestrator.core.job_names import location_name
from trainmaster.orchestrator.core.names import RUN_LABEL
from trainmaster.partial_import import IMPORTING, VERTEX_CLIENT, import_parts_of

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient


class VertexModels(RegionalClients):
    """The models of one project and region. `endpoint` is None for Google Cloud, else an emulator's URL."""

    def __init__(self, *, project: str, region: str, endpoint: str | None) -> None:
        super().__init__(endpoint)
        self._region, self._parent = region, location_name(project, region)

    def _client(self) -> "ModelServiceClient":
        with IMPORTING:
            import_parts_of(*VERTEX_CLIENT)
            from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient

        return self._kept_client(ModelServiceClient, self._region)

    def versions_of_run(self, model_id: str, run_id: str) -> Sequence[ModelVersion] | None:
        label = f'labels.{RUN_LABEL}="{run_id}"'
        request = {"name": self._name(model_id), "filter": label}
        with failures_of(SERVICE, f"list the versions of the model {model_id}"):
            try:
                found = list(self._client().list_model_versions(request=request, timeout=TIMEOUT_S))
            except api_errors().NotFound:
                return None
            # The service merges the labels of a model into those of its versions.
            own = (version_from(model) for model in found if model.labels.get(RUN_LABEL) == run_id)
            return sorted(own, key=lambda version: version.number)

    def upload(self, upload: ModelUpload, *, is_first: bool) -> str | None:
        model: dict[str, Any] = {
            "display_name": upload.display_name,
            "version_description": upload.description,
            "labels": upload.labels,
        }
        if upload.image is not None:
            model |= {"artifact_uri": upload.artifact_uri, "container_spec": {"image_uri": upload.image}}
        where = {"model_id": upload.model_id} if is_first else {"parent_model": self._name(upload.model_id)}
        request = {"parent": self._parent, "model": model, **where}
        with failures_of(SERVICE, f"upload a version of the model {upload.model_id}"):
            try:
                # No retry: the service has no request id, so a repeated call could add a second version.
                begun = self._client().upload_model(request=request, timeout=TIMEOUT_S, retry=None)
            except api_errors().Conflict:  # of which AlreadyExists is one
                if is_first:
                    return None
                raise
            return str(begun.operation.name)

    def why_upload_failed(self, operation: str) -> str:
        with failures_of(SERVICE, f"read {operation}"):
            try:
                found = self._client().get_operation({"name": operation}, timeout=TIMEOUT_S)
            except api_errors().NotFound:  # the service forgets operations after a while
                return ""
        return str(found.error.message or f"code {found.error.code}") if found.HasField("error") else ""

    def version_with_alias(self, model_id: str, alias: str) -> ModelVersion | None:
        name = f"{self._name(model_id)}@{alias}"
        with failures_of(SERVICE, f"read {name}"):
            try:
                return version_from(self._client().get_model(name=name, timeout=TIMEOUT_S))
            except api_errors().NotFound:
                return None

    def change_alias(self, version: ModelVersion, change: str) -> None:
        name = f"{version.model}@{version.number}"
        with failures_of(SERVICE, f"change the aliases of {name}"):
            self._client().merge_version_aliases(name=name, version_aliases=[change], timeout=TIMEOUT_S)

    def _name(self, model_id: str) -> str:
        return f"{self._parent}/models/{model_id}"


def version_from(model: Any) -> ModelVersion:  # Any: proto-plus messages are untyped
    """The version that the message describes."""
    name = model.name.partition("@")[0]
    return ModelVersion(model=name, number=int(model.version_id), aliases=tuple(model.version_aliases))
