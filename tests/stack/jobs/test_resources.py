"""Training pipelines, models and metadata, by the official clients over REST."""

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest
from google.api_core import exceptions
from google.cloud.aiplatform_v1.services.metadata_service import MetadataServiceClient
from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient
from google.cloud.aiplatform_v1.services.pipeline_service import PipelineServiceClient
from google.cloud.aiplatform_v1.types import TrainingPipeline

from tests.stack.waiting import wait_until
from trainstack.vertex.resources.pipelines import CUSTOM_TASK

from .conftest import PARENT, Stack, client, container

STORE = f"{PARENT}/metadataStores/default"
FULL = {"display_name": "m", "container_spec": {"image_uri": "serving"}}


@pytest.fixture
def models(stack: Stack) -> Any:
    return client(ModelServiceClient, stack)


@pytest.fixture
def metadata(stack: Stack) -> Any:
    service = client(MetadataServiceClient, stack)
    service.create_metadata_store(parent=PARENT, metadata_store={}, metadata_store_id="default").result()
    return service


def pipeline(*words: str, **more: Any) -> TrainingPipeline:
    spec = {
        "worker_pool_specs": [container(*words)],
        "base_output_directory": {"output_uri_prefix": "gs://b/out"},
        "scheduling": {"strategy": 4, "timeout": None},
    }
    task = {"training_task_definition": CUSTOM_TASK, "training_task_inputs": spec}
    return TrainingPipeline({"display_name": "p", **task, **more})


def ended(stack: Stack, service: Any, asked: TrainingPipeline) -> Any:
    created = service.create_training_pipeline(parent=PARENT, training_pipeline=asked)
    stack.ended(created.training_task_metadata["backingCustomJob"])
    return service.get_training_pipeline(name=created.name)


def test_a_pipeline_runs_a_custom_job_and_uploads_what_it_wrote(stack: Stack, models: Any) -> None:
    service, written = client(PipelineServiceClient, stack), stack.buckets / "b/out/model"
    written.mkdir(parents=True)
    (written / "weights").write_text("w")
    done = ended(stack, service, pipeline("print=x", model_to_upload=FULL, labels={"team": "vision"}))
    assert (done.state.name, done.model_to_upload.version_id) == ("PIPELINE_STATE_SUCCEEDED", "1")
    model = models.get_model(name=done.model_to_upload.name)
    assert (model.artifact_uri, model.training_pipeline) == ("gs://b/out/model", done.name)
    job = stack.jobs.get_custom_job(name=done.training_task_metadata["backingCustomJob"])
    assert (job.display_name, dict(job.labels), job.job_spec.scheduling.strategy) == (
        "p-custom-job",
        {"team": "vision"},
        4,
    )
    listed = service.list_training_pipelines(request={"parent": PARENT, "filter": "labels.team=vision"})
    assert [each.name for each in listed] == [done.name]
    service.delete_training_pipeline(name=done.name).result()
    with pytest.raises(exceptions.NotFound):
        service.get_training_pipeline(name=done.name)


def test_a_pipeline_fails_with_its_job_and_without_a_model(stack: Stack, models: Any) -> None:
    (stack.buckets / "b").mkdir()
    service = client(PipelineServiceClient, stack)
    failed = ended(stack, service, pipeline("exit=3", model_to_upload=FULL))
    assert failed.state.name == "PIPELINE_STATE_FAILED"
    assert "non-zero status of 3" in failed.error.message
    empty = ended(stack, service, pipeline("print=x", model_to_upload=FULL))
    assert empty.error.message == 'There are no files under "gs://b/out/model" to copy.'
    assert list(models.list_models(parent=PARENT)) == []


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"training_task_definition": "gs://x/automl.yaml"}, "is not imitated by the local stack"),
        ({"input_data_config": {"dataset_id": "1"}}, "TrainingPipeline.inputDataConfig is not imitated"),
        ({"model_to_upload": {**FULL, "explanation_spec": {"parameters": {"top_k": 1}}}}, "Model.explanationSpec is not"),
        ({"training_task_inputs": {"worker_pool_specs": []}}, "at least one worker pool"),
        ({"training_task_inputs": {"workers": 1}}, "Unknown name 'workers'"),
    ],
)  # fmt: skip
def test_what_a_pipeline_cannot_do_here_is_refused(idle: Stack, more: dict[str, Any], fault: str) -> None:
    (idle.buckets / "b").mkdir(exist_ok=True)
    with pytest.raises(exceptions.BadRequest, match=fault):
        client(PipelineServiceClient, idle).create_training_pipeline(
            parent=PARENT, training_pipeline=pipeline("print=x", **more)
        )


@pytest.mark.parametrize(
    ("uri", "image", "fault"),
    [
        ("gs://b/m", "serving", None),
        ("gs://b/empty", "serving", 'There are no files under "gs://b/empty" to copy.'),
        ("gs://none/m", "serving", 'There are no files under "gs://none/m" to copy.'),
        ("gs://b/../b/m", "serving", 'There are no files under "gs://b/../b/m" to copy.'),
        ("gs://b/m", "sklearn-cpu.1-3", "gs://b/m is expected to contain exactly one of: [model.pkl, model.joblib]."),
        ("gs://b/m/", "tf2-cpu.2-15", None),
    ],
)  # fmt: skip
def test_a_model_without_the_files_that_its_container_needs_is_refused(
    stack: Stack, models: Any, uri: str, image: str, fault: str | None
) -> None:
    file = stack.buckets / "b/m/saved_model.pb"
    file.parent.mkdir(parents=True)
    file.write_text("m")
    image_uri = image if image == "serving" else f"us-docker.pkg.dev/vertex-ai/prediction/{image}:latest"
    model = {**FULL, "artifact_uri": uri, "container_spec": {"image_uri": image_uri}}
    refused = pytest.raises(exceptions.BadRequest, match=re.escape(fault) if fault else None)
    with refused if fault else contextlib.nullcontext():
        models.upload_model(parent=PARENT, model=model).result()
    assert len(list(models.list_models(parent=PARENT))) == (fault is None)


def test_versions_and_aliases_of_a_model(models: Any) -> None:
    def upload(**more: Any) -> str:
        version = {**FULL, "version_aliases": more.pop("version_aliases", [])}
        request = {"parent": PARENT, "model": version, **more}
        return str(models.upload_model(request=request).result().model_version_id)

    name = f"{PARENT}/models/cats"
    assert [upload(model_id="cats", version_aliases=["live"]), upload(parent_model="cats")] == ["1", "2"]
    with pytest.raises(exceptions.Conflict):
        upload(model_id="cats")
    assert upload(parent_model=name, version_aliases=["default", "live"]) == "3"
    models.merge_version_aliases(name=f"{name}@2", version_aliases=["live", "next"])
    models.merge_version_aliases(name=f"{name}@next", version_aliases=["-next"])
    assert list(models.get_model(name=f"{name}@live").version_aliases) == ["live"]
    models.update_model(model={"name": name, "description": "d"}, update_mask={"paths": ["description"]})
    assert models.get_model(name=f"{name}@1").description == "d"
    with pytest.raises(exceptions.BadRequest, match="update_mask"):
        models.update_model(model={"name": name}, update_mask={"paths": ["artifact_uri"]})
    with pytest.raises(exceptions.Conflict, match="has changed"):
        models.update_model(model={"name": name, "etag": "old"}, update_mask={"paths": ["description"]})
    with pytest.raises(exceptions.BadRequest, match="default version"):
        models.delete_model_version(name=f"{name}@3")
    models.delete_model_version(name=f"{name}@2").result()
    assert upload(parent_model=name) == "4"
    assert [each.version_id for each in models.list_models(parent=PARENT)] == ["3"]
    models.delete_model(name=name).result()
    with pytest.raises(exceptions.NotFound):
        models.get_model(name=name)


def test_a_version_is_there_once_its_upload_has_ended(models: Any) -> None:
    request = {"parent": PARENT, "model": {**FULL, "labels": {"run": "a"}}, "model_id": "cats"}
    upload, name = models.upload_model(request=request), f"{PARENT}/models/cats"
    assert "/models/cats/operations/" in upload.operation.name
    assert not models.get_operation({"name": upload.operation.name}).done
    with pytest.raises(exceptions.NotFound):
        models.get_model(name=name)
    with pytest.raises(exceptions.NotFound):
        models.upload_model(request={"parent": PARENT, "model": FULL, "parent_model": name})
    with pytest.raises(exceptions.Conflict):
        models.upload_model(request=request)
    assert upload.result().model_version_id == "1"
    other = {**FULL, "labels": {"run": "b"}, "version_aliases": ["live"]}
    models.upload_model(request={"parent": PARENT, "model": other, "parent_model": name}).result()
    found = models.list_model_versions(request={"name": name, "filter": "labels.run=b"})
    assert [(each.version_id, list(each.version_aliases)) for each in found] == [("2", ["live"])]


def test_contexts_know_their_members_and_children(metadata: Any) -> None:
    def create(kind: str, name: str) -> str:
        fields = {"display_name": name, "schema_title": f"system.{name}", "metadata": {"a": 1}}
        request = {"parent": STORE, kind: fields, f"{kind}_id": name}
        return str(getattr(metadata, f"create_{kind}")(request=request).name)

    parent, child = create("context", "e"), create("context", "r")
    execution, artifact = create("execution", "x"), create("artifact", "w")
    metadata.add_context_children(context=parent, child_contexts=[child])
    metadata.add_context_artifacts_and_executions(context=child, artifacts=[artifact], executions=[execution])
    metadata.add_execution_events(execution=execution, events=[{"artifact": artifact, "type_": "OUTPUT"}])
    contexts = metadata.list_contexts(
        request={"parent": STORE, "filter": f'schema_title="system.r" AND parent_contexts:"{parent}"'}
    )
    assert [each.name for each in contexts] == [child]
    inside = {
        "parent": STORE,
        "filter": f'(schema_title="a" OR schema_title="system.x") AND in_context("{child}")',
    }
    assert [each.name for each in metadata.list_executions(request=inside)] == [execution]
    for found in (
        metadata.query_context_lineage_subgraph(context=child),
        metadata.query_execution_inputs_and_outputs(execution=execution),
    ):
        assert [each.type_.name for each in found.events] == ["OUTPUT"]
        assert [each.name for each in found.artifacts] == [artifact]
    changed = metadata.update_context(context={"name": child, "metadata": {"b": 2}})
    assert (dict(changed.metadata), changed.display_name) == ({"b": 2}, "r")
    metadata.delete_artifact(name=artifact).result()
    assert list(metadata.query_context_lineage_subgraph(context=child).artifacts) == []


def test_a_resource_of_a_store_that_does_not_exist_is_not_found(stack: Stack, metadata: Any) -> None:
    with pytest.raises(exceptions.NotFound, match="MetadataStore"):
        metadata.create_context(parent=f"{PARENT}/metadataStores/none", context={})
    with pytest.raises(exceptions.BadRequest, match="context_id"):
        metadata.create_context(parent=STORE, context={}, context_id="a/b")
    with pytest.raises(exceptions.BadRequest, match="allowMissing is not imitated"):
        metadata.update_context(request={"context": {"name": f"{STORE}/contexts/c"}, "allow_missing": True})


@pytest.fixture
def restarted(start: Callable[..., AbstractContextManager[Stack]]) -> Iterator[Callable[[], Stack]]:
    with contextlib.ExitStack() as running:

        def again() -> Stack:
            running.close()
            return running.enter_context(start())

        yield again


def test_resources_survive_the_stack(restarted: Callable[[], Stack]) -> None:
    models = client(ModelServiceClient, restarted())
    upload = models.upload_model(parent=PARENT, model=FULL)
    models = client(ModelServiceClient, restarted())
    wait_until(lambda: models.get_operation({"name": upload.operation.name}).done, "the upload ends")
    assert len(list(models.list_models(parent=PARENT))) == 1


def test_metadata_that_is_too_deep_to_be_read_again_is_refused(stack: Stack, metadata: Any) -> None:
    deep: Any = 1
    for _ in range(45):
        deep = {"a": deep}
    answer = httpx.post(f"{stack.url}/v1/{STORE}/contexts?contextId=c&alt=json", json={"metadata": deep})
    assert answer.status_code == 400
    assert list(metadata.list_contexts(parent=STORE)) == []
