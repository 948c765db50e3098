"""PipelineService: training pipelines of one custom job, whose model is uploaded when it has succeeded.

Source: https://cloud.google.com/vertex-ai/docs/training/create-training-pipeline and the schema custom_task_1.0.0.yaml,
read 2026-11. Other training tasks, and datasets, are refused.
"""

from collections.abc import Mapping

from google.protobuf import empty_pb2
from google.protobuf.json_format import MessageToDict

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.jobs.resource.job import VertexJob, copy_of, new_job_id
from trainstack.jobs.service import JobService
from trainstack.vertex.resources.handlers import Handler, StandardHandlers
from trainstack.vertex.resources.methods import message_of
from trainstack.vertex.resources.models import Models
from trainstack.vertex.resources.store import Message, ResourceStore, by_number

CUSTOM_TASK = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"
_PIPELINE = message_of("TrainingPipeline")
_SUCCEEDED, _ENDED = 4, (4, 5, 7)
_FAILED, _NOT_FOUND_CODE, _PRECONDITION_CODE = 5, 5, 9


class Pipelines:
    """A pipeline's state is that of its job, read when a pipeline or a model is requested."""

    def __init__(
        self, store: ResourceStore, standard: StandardHandlers, models: Models, jobs: JobService
    ) -> None:
        self._store, self._standard, self._models, self._jobs = store, standard, models, jobs

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "CreateTrainingPipeline": self.create,
            "CancelTrainingPipeline": self.cancel,
            "DeleteTrainingPipeline": self.delete,
        }

    def create(self, request: Message) -> Message:
        """Start the custom job of a pipeline.

        Raises:
            ApiError: INVALID_ARGUMENT with every fault of the job, and as `JobService.create`.
        """
        pipeline, parent = copy_of(request.training_pipeline), by_number(request.parent)
        if pipeline.training_task_definition != CUSTOM_TASK:
            raise InvalidArgumentError(
                f"The training task {pipeline.training_task_definition!r:.200} is not imitated by the local stack; "
                f"use a custom job or {CUSTOM_TASK}.",
            )
        fields = MessageToDict(pipeline)
        body = {key: fields[key] for key in ("labels", "encryptionSpec") if key in fields}
        spec = fields.get("trainingTaskInputs", {})
        name = f"{pipeline.display_name}-custom-job" if pipeline.display_name else ""
        _, project, _, location = parent.split("/")
        job = self._jobs.create(project, location, {**body, "displayName": name, "jobSpec": spec})
        pipeline.name = f"{parent}/trainingPipelines/{new_job_id()}"
        pipeline.training_task_metadata.struct_value.update({"backingCustomJob": job.name})
        return self._follow(pipeline, job)

    def cancel(self, request: Message) -> Message:
        pipeline = self._store.get(_PIPELINE, by_number(request.name))
        if (job := self._job_of(pipeline)) is not None:
            self._jobs.cancel(job.parent, job.job_id)
        return empty_pb2.Empty()

    def delete(self, request: Message) -> Message:
        pipeline = self._store.get(_PIPELINE, by_number(request.name))
        if pipeline.state not in _ENDED:
            raise ApiError(
                Status.FAILED_PRECONDITION, f"{pipeline.name} has not ended; cancel it before you delete it."
            )
        return self._standard.delete("TrainingPipeline", request)

    def settle(self, location: str) -> None:
        """Bring the unfinished pipelines of `projects/P/locations/L` to the states of their jobs."""
        for pipeline in self._store.under(_PIPELINE, f"{location}/trainingPipelines"):
            if pipeline.state not in _ENDED:
                self._follow(pipeline, self._job_of(pipeline))

    def _job_of(self, pipeline: Message) -> VertexJob | None:
        return self._jobs.find(
            pipeline.training_task_metadata.struct_value["backingCustomJob"].rpartition("/")[2]
        )

    def _follow(self, pipeline: Message, job: VertexJob | None) -> Message:
        if job is None:
            _fail(pipeline, _NOT_FOUND_CODE, "Its custom job was deleted.")
        else:
            for field in ("create_time", "start_time", "update_time", "end_time", "error"):
                if job.message.HasField(field):
                    getattr(pipeline, field).CopyFrom(getattr(job.message, field))
            pipeline.state = job.message.state  # the same numbers
            if pipeline.state == _SUCCEEDED and pipeline.HasField("model_to_upload"):
                self._upload(pipeline, job.spec.base_output_directory.output_uri_prefix)
        self._store.put(pipeline)
        return pipeline

    def _upload(self, pipeline: Message, output: str) -> None:
        """Upload what the job wrote as its model; without any file the pipeline fails, as in the service."""
        model = copy_of(pipeline.model_to_upload)
        model.artifact_uri = f"{output.rstrip('/')}/model"
        model.training_pipeline = pipeline.name
        request = message_of("UploadModelRequest")(
            parent="/".join(pipeline.name.split("/")[:4]),
            model=model,
            model_id=pipeline.model_id,
            parent_model=pipeline.parent_model,
        )
        try:
            uploaded = self._models.new_version(request)
        except ApiError as fault:
            _fail(pipeline, _PRECONDITION_CODE, str(fault))
            return
        self._models.add(uploaded)
        pipeline.model_to_upload.name = uploaded.name
        pipeline.model_to_upload.version_id = uploaded.version_id


def _fail(pipeline: Message, code: int, reason: str) -> None:
    pipeline.state, pipeline.error.code, pipeline.error.message = _FAILED, code, reason
    pipeline.end_time.GetCurrentTime()
    pipeline.update_time.GetCurrentTime()
