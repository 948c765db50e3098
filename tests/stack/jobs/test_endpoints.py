"""Endpoints and what is deployed on them, by the official client, the SDK and gcloud over REST."""

import contextlib
import json
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1.services.endpoint_service import EndpointServiceClient
from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient

from tests.stack.gcloud import gcloud_of
from tests.stack.waiting import wait_until

from .conftest import PARENT, Stack, client

MODEL, ENDPOINT = f"{PARENT}/models/cats", f"{PARENT}/endpoints/live"
pytestmark = pytest.mark.slow  # the client first asks after an operation when a second has passed


def upload(models: Any, *, image: str = "serving", **where: str) -> None:
    model = {"display_name": "cats", "container_spec": {"image_uri": image} if image else None}
    models.upload_model(request={"parent": PARENT, "model": model, **where}).result()


def served_by(version: str, deployed_id: str = "", **resources: Any) -> dict[str, Any]:
    return {
        "id": deployed_id,
        "model": f"{MODEL}@{version}",
        "dedicated_resources": {"machine_spec": {}, "min_replica_count": 1, **resources},
    }


def with_model(stack: Stack) -> Any:
    found = client(ModelServiceClient, stack)
    upload(found, model_id="cats")
    return found


def with_endpoint(stack: Stack) -> Any:
    service = client(EndpointServiceClient, stack)
    request = {"parent": PARENT, "endpoint": {"display_name": "live"}, "endpoint_id": "live"}
    operation = service.create_endpoint(request=request)
    with pytest.raises(exceptions.NotFound):
        service.get_endpoint(name=ENDPOINT)
    assert operation.result().name.endswith("/endpoints/live")
    return service


@pytest.fixture
def models(stack: Stack) -> Any:
    return with_model(stack)


@pytest.fixture
def endpoints(stack: Stack, models: Any) -> Any:
    return with_endpoint(stack)


@pytest.fixture(scope="module")
def unchanged(idle: Stack) -> tuple[Any, Any]:
    """Models and endpoints of a stack where every deployment is refused."""
    return with_model(idle), with_endpoint(idle)


def deploy(endpoints: Any, deployed: dict[str, Any], **split: int) -> Any:
    traffic = {key.lstrip("_"): part for key, part in split.items()}
    return endpoints.deploy_model(endpoint=ENDPOINT, deployed_model=deployed, traffic_split=traffic)


def test_a_model_is_deployed_beside_another_and_takes_its_traffic(models: Any, endpoints: Any) -> None:
    upload(models, parent_model=MODEL)
    first = deploy(endpoints, served_by("1", "11"), _0=100)
    with pytest.raises(
        exceptions.BadRequest, match=f"Another operation is under way .*{first.operation.name}"
    ):
        deploy(endpoints, served_by("2", "22"))
    assert not endpoints.get_endpoint(name=ENDPOINT).deployed_models
    listed = endpoints.list_operations({"name": ENDPOINT}).operations
    assert next((one.name, one.done) for one in listed) == (first.operation.name, False)
    made = first.result().deployed_model
    resources = made.dedicated_resources
    assert (made.id, made.model_version_id, made.display_name) == ("11", "1", "cats")
    assert (resources.machine_spec.machine_type, resources.max_replica_count) == ("n1-standard-2", 1)
    with pytest.raises(exceptions.Conflict, match="DeployedModel 11 already exists"):
        deploy(endpoints, served_by("2", "11"))
    deploy(endpoints, served_by("2", "22", max_replica_count=3), _11=0, _0=100).result()
    endpoint = endpoints.get_endpoint(name=ENDPOINT)
    assert ([one.id for one in endpoint.deployed_models], dict(endpoint.traffic_split)) == (
        ["11", "22"],
        {"11": 0, "22": 100},
    )
    assert [one.deployed_model_id for one in models.get_model(name=f"{MODEL}@2").deployed_models] == ["22"]
    changed = {"name": ENDPOINT, "traffic_split": {"11": 100}}
    moved = endpoints.update_endpoint(endpoint=changed, update_mask={"paths": ["traffic_split"]})
    assert dict(moved.traffic_split) == {"11": 100}


def test_what_is_deployed_or_has_traffic_stays(models: Any, endpoints: Any) -> None:
    upload(models, parent_model=MODEL)
    for deployed, split in ((served_by("1", "11"), {"_0": 100}), (served_by("2", "22"), {})):
        deploy(endpoints, deployed, **split).result()
    with pytest.raises(exceptions.BadRequest, match="DeployedModel 11 has traffic"):
        endpoints.undeploy_model(endpoint=ENDPOINT, deployed_model_id="11")
    for remove, name in (
        (models.delete_model, MODEL),
        (models.delete_model_version, f"{MODEL}@2"),
        (endpoints.delete_endpoint, ENDPOINT),
    ):
        with pytest.raises(exceptions.BadRequest, match="deployed"):
            remove(name=name)
    endpoints.undeploy_model(endpoint=ENDPOINT, deployed_model_id="22").result()
    models.delete_model_version(name=f"{MODEL}@2").result()
    endpoints.undeploy_model(endpoint=ENDPOINT, deployed_model_id="11").result()  # the last one
    assert dict(endpoints.get_endpoint(name=ENDPOINT).traffic_split) == {}
    endpoints.delete_endpoint(name=ENDPOINT).result()
    models.delete_model(name=MODEL).result()
    assert list(endpoints.list_endpoints(parent=PARENT)) == []


@pytest.mark.parametrize(
    ("deployed", "split", "fault"),
    [
        (served_by("7"), {}, "The Model .*cats@7 does not exist"),
        (served_by("1", "a"), {}, r"id: expected \[0-9\]\{1,10\}, found 'a'"),
        (served_by("1", min_replica_count=0), {}, "expected 1 <= min_replica_count"),
        (served_by("1", spot=True), {}, "spot is not imitated"),
        (served_by("1", machine_spec={"accelerator_type": 8}), {}, "Both `accelerator_type` and"),
        (served_by("1"), {"_5": 100}, r"The following DeployedModel ID\(s\) \[5\] do not exist"),
        (served_by("1"), {"_0": 90}, "sum to 100"),
        ({"model": MODEL, "automatic_resources": {"min_replica_count": 1}}, {}, "'automatic_resources' is not supported"),
        ({**served_by("1"), "model": f"{PARENT}/models/dogs"}, {}, "'dedicated_resources' is not supported"),
    ],
)  # fmt: skip
def test_what_cannot_be_deployed_is_refused(
    unchanged: tuple[Any, Any], deployed: dict[str, Any], split: dict[str, int], fault: str
) -> None:
    models, endpoints = unchanged
    if "dogs" in deployed["model"]:
        upload(models, image="", model_id="dogs")
    with pytest.raises((exceptions.BadRequest, exceptions.NotFound), match=fault):
        deploy(endpoints, deployed, **split)
    assert not endpoints.get_endpoint(name=ENDPOINT).deployed_models


def test_ids_masks_and_etags_that_are_wrong_are_refused(unchanged: tuple[Any, Any]) -> None:
    _, endpoints = unchanged
    with pytest.raises(exceptions.BadRequest, match=r"(?s)endpoint_id: .*endpoint\.display_name: "):
        endpoints.create_endpoint(request={"parent": PARENT, "endpoint": {}, "endpoint_id": "Live"})
    again = {"parent": PARENT, "endpoint": {"display_name": "x"}, "endpoint_id": "live"}
    with pytest.raises(exceptions.Conflict, match="already exists"):
        endpoints.create_endpoint(request=again)
    with pytest.raises(exceptions.BadRequest, match="update_mask: expected some of"):
        endpoints.update_endpoint(endpoint={"name": ENDPOINT}, update_mask={"paths": ["network"]})
    stale = {"name": ENDPOINT, "etag": "old"}
    with pytest.raises(exceptions.Conflict, match="has changed"):
        endpoints.update_endpoint(endpoint=stale, update_mask={"paths": ["labels"]})


def test_a_deployment_ends_in_the_next_stack(start: Callable[..., AbstractContextManager[Stack]]) -> None:
    with contextlib.ExitStack() as running:
        stack = running.enter_context(start())
        with_model(stack)
        begun = deploy(with_endpoint(stack), served_by("1", "11"), _0=100).operation.name
        running.close()
        again = client(EndpointServiceClient, running.enter_context(start()))
        wait_until(lambda: again.get_operation({"name": begun}).done)
        assert dict(again.get_endpoint(name=ENDPOINT).traffic_split) == {"11": 100}


def test_the_sdk_deploys_lists_and_undeploys(stack: Stack, models: Any) -> None:
    from google.cloud import aiplatform

    aiplatform.init(
        project="p1", location="us-central1", credentials=AnonymousCredentials(), api_endpoint=stack.url,
        api_transport="rest",
    )  # fmt: skip
    endpoint = aiplatform.Endpoint.create(display_name="live", endpoint_id="live")
    endpoint.deploy(aiplatform.Model("cats@1"), machine_type="n1-standard-4", deployed_model_display_name="a")
    (deployed,) = aiplatform.Endpoint("live").list_models()
    assert (deployed.display_name, endpoint.traffic_split) == ("a", {deployed.id: 100})
    aiplatform.Model("cats").deploy(endpoint=endpoint, traffic_percentage=30)
    assert sorted(endpoint.traffic_split.values()) == [30, 70]
    with pytest.raises(exceptions.BadRequest, match="does not serve POST"):
        endpoint.predict([[1.0]])
    endpoint.undeploy_all()
    endpoint.delete()
    assert aiplatform.Endpoint.list() == []
    aiplatform.initializer.global_pool.shutdown(wait=True)


@pytest.mark.skipif(not shutil.which("gcloud"), reason="gcloud is not installed")
def test_gcloud_creates_lists_describes_deploys_and_undeploys(
    stack: Stack, models: Any, tmp_path: Path
) -> None:
    run = gcloud_of("ai", api="AIPLATFORM", url=f"{stack.url}/", project="p1", folder=tmp_path)

    def gcloud(*words: str) -> Any:
        out = run("endpoints", *words, "--region=us-central1", "--format=json")
        return json.loads(out) if out.strip() else None

    gcloud("create", "--display-name=live", "--endpoint-id=123")
    gcloud("deploy-model", "123", "--model=cats@1", "--display-name=a", "--machine-type=n1-standard-4",
           "--accelerator=type=nvidia-tesla-t4,count=1", "--deployed-model-id=77", "--traffic-split=0=100")  # fmt: skip
    (listed,) = gcloud("list")
    described = gcloud("describe", "123")
    assert (listed["displayName"], described["trafficSplit"]) == ("live", {"77": 100})
    spec = described["deployedModels"][0]["dedicatedResources"]["machineSpec"]
    assert spec == {
        "machineType": "n1-standard-4",
        "acceleratorType": "NVIDIA_TESLA_T4",
        "acceleratorCount": 1,
    }
    gcloud("undeploy-model", "123", "--deployed-model-id=77")
    assert "deployedModels" not in gcloud("describe", "123")
    gcloud("delete", "123")
    assert re.fullmatch(r"\[\]\s*", run("endpoints", "list", "--region=us-central1", "--format=json"))
