"""JobService as the official REST client sees it."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from google.api_core import exceptions

from .conftest import PARENT, Stack, container


def accepted() -> dict[str, Any]:
    """A CustomJob as JSON that the service accepts."""
    return {
        "displayName": "d",
        "jobSpec": {
            "workerPoolSpecs": [
                {
                    "machineSpec": {
                        "machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1,
                        "gpuPartitionSize": "1g.5gb", "reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"},
                    },
                    "lustreMounts": [{"instanceIp": "10.0.0.9", "volumeHandle": "v", "filesystem": "fs", "mountPoint": "m"}],
                    "replicaCount": "1",
                    "containerSpec": {"imageUri": "gcr.io/p/i"},
                }
            ],
            "scheduling": {"timeout": "3600s", "strategy": "SPOT"},
            "pscInterfaceConfig": {"networkAttachment": "attachment"},
            "models": ["projects/p/locations/us-central1/models/1"],
            "protectedArtifactLocationId": "us-east1",
        },
    }  # fmt: skip


def post(stack: Stack, body: object, query: str = "") -> httpx.Response:
    return httpx.post(f"{stack.url}/v1/{PARENT}/customJobs{query}", json=body, timeout=60)


def test_a_job_is_found_by_the_projects_number_or_id(stack: Stack) -> None:
    job = stack.submit(container("print=x"))
    _, project, _, location, _, job_id = job.name.split("/")
    assert (project.isdigit(), location, len(job_id), job_id.isdigit()) == (True, "us-central1", 19, True)
    assert stack.jobs.get_custom_job(name=job.name).name == job.name
    assert stack.jobs.get_custom_job(name=f"{PARENT}/customJobs/{job_id}").name == job.name


def test_a_job_comes_back_as_it_was_sent_with_enums_as_asked(stack: Stack) -> None:
    by_name = post(stack, accepted()).json()
    assert by_name["state"] == "JOB_STATE_PENDING"
    assert by_name["jobSpec"] == accepted()["jobSpec"]
    numbers = accepted()
    numbers["jobSpec"]["scheduling"]["strategy"] = 4
    numbers["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] = 1
    by_number = post(stack, numbers, "?%24alt=json%3Benum-encoding%3Dint").json()
    assert by_number["state"] == 2
    assert by_number["jobSpec"]["scheduling"]["strategy"] == 4
    assert by_number["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] == "1"


def test_snake_case_is_accepted_and_output_only_fields_are_dropped(stack: Stack) -> None:
    body = {
        "display_name": "d",
        "job_spec": accepted()["jobSpec"],
        "state": "JOB_STATE_SUCCEEDED",
        "name": "mine",
    }
    job = post(stack, body).json()
    assert job["state"] == "JOB_STATE_PENDING"
    assert job["name"] != "mine"


def changed(path: str, value: object) -> dict[str, Any]:
    body = accepted()
    here: Any = body
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        here = here.setdefault(part, {}) if isinstance(here, dict) else here[part]
    here[last] = value
    return body


POOL = "jobSpec.workerPoolSpecs.0"


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("displayName", "", "display_name: a job needs a name"),
        ("displayName", "x" * 129, "display_name: at most 128 characters, found 129"),
        ("labels", {"Upper": "x"}, "labels: invalid key 'Upper'"),
        ("labels", {"1st": "x"}, "labels: invalid key '1st'"),
        ("labels", {"k": "UP"}, "labels['k']: invalid value 'UP'"),
        ("labels", {f"k{i}": "" for i in range(65)}, "labels: at most 64, found 65"),
        ("jobSpec", {}, "worker_pool_specs: at least one worker pool"),
        (POOL, {}, "one of container_spec and python_package_spec is required"),
        (f"{POOL}.replicaCount", "2", "replica_count: the first pool is the chief and has exactly 1 replica, found 2"),
        (f"{POOL}.machineSpec", {}, "machine_type: required"),
        (f"{POOL}.machineSpec.acceleratorType", 99, "accelerator_type: unknown enum value 99"),
        (f"{POOL}.machineSpec.acceleratorType", "NVIDIA_FAST", "NVIDIA_FAST"),
        (f"{POOL}.containerSpec.imageUri", "", "image_uri: required"),
        (f"{POOL}.containerSpec.env", [{"name": "A", "value": "b"}] * 101, "at most 100 variables, found 101"),
        (f"{POOL}.containerSpec.env", [{"name": "A=B"}], "'A=B' cannot be the name"),
        (f"{POOL}.containerSpec.args", ["x" * 100_001], "at most 100000 characters in total, found 100001"),
        (f"{POOL}.replicaCount", "many", "replicaCount"),
        (POOL, {"pythonPackageSpec": {"packageUris": ["gs://b/t.tar.gz", "https://x/t"]}}, "package_uris[1]: expected gs://BUCKET/OBJECT"),
        ("jobSpec.baseOutputDirectory", {"outputUriPrefix": "/tmp"}, "expected gs://BUCKET/PATH, found '/tmp'"),
        ("jobSpec.tensorboard", "projects/p/locations/l/tensorboards/1", "needs job_spec.service_account"),
        ("jobSpec.scheduling.timeout", "an hour", "timeout"),
        ("jobSpec.scheduling.timeout", "-5s", "timeout: must not be negative"),
        ("jobSpec.imageUri", "x", "Unknown name 'imageUri' at 'custom_job.job_spec': Cannot find field."),
        (f"{POOL}.containerSpec.image", "x", "Unknown name 'image' at 'custom_job.job_spec.worker_pool_specs[0].container_spec'"),
    ],
)  # fmt: skip
def test_an_invalid_job_is_refused_with_the_reason(idle: Stack, path: str, value: object, fault: str) -> None:
    answer = post(idle, changed(path, value))
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert fault in error["message"]


def test_every_fault_is_reported_at_once(idle: Stack) -> None:
    body = changed("displayName", "")
    body["labels"] = {"Upper": "x"}
    body["jobSpec"]["workerPoolSpecs"].append({"replicaCount": "0", "nfsMounts": [{}]})
    message = post(idle, body).json()["error"]["message"]
    for part in (
        "display_name",
        "'Upper'",
        "worker_pool_specs[1].replica_count",
        "worker_pool_specs[1].machine_spec",
    ):
        assert part in message


def test_international_labels_are_allowed(stack: Stack) -> None:
    job = stack.submit(container("print=x"), labels={"équipe": "данные", "チーム": ""})
    assert dict(job.labels) == {"équipe": "данные", "チーム": ""}


def test_a_job_that_does_not_exist_is_not_found(idle: Stack) -> None:
    for call in (idle.jobs.get_custom_job, idle.jobs.cancel_custom_job, idle.jobs.delete_custom_job):
        with pytest.raises(exceptions.NotFound, match="customJobs/9 does not exist"):
            call(name=f"{PARENT}/customJobs/9")


def test_jobs_of_other_places_are_not_seen(stack: Stack) -> None:
    job = stack.submit(container("print=x"))
    job_id = job.name.rpartition("/")[2]
    for parent in ("projects/p1/locations/europe-west1", "projects/p2/locations/us-central1"):
        assert list(stack.jobs.list_custom_jobs(parent=parent)) == []
        with pytest.raises(exceptions.NotFound):
            stack.jobs.get_custom_job(name=f"{parent}/customJobs/{job_id}")


def test_lists_are_newest_first_in_pages_that_do_not_move_when_jobs_are_added(stack: Stack) -> None:
    names = [stack.submit(container("print=x"), display_name=f"j{i}").display_name for i in range(5)]
    pages = stack.jobs.list_custom_jobs(request={"parent": PARENT, "page_size": 2}).pages
    first = next(pages)
    stack.submit(container("print=x"), display_name="late")
    rest = [job.display_name for page in pages for job in page.custom_jobs]
    assert [job.display_name for job in first.custom_jobs] + rest == names[::-1]


def test_a_list_of_jobs_is_filtered_by_label_and_state(stack: Stack) -> None:
    wanted = stack.submit(container("print=x"), display_name="wanted", labels={"trainmaster_run_id": "r-1"})
    stack.submit(container("print=x"), display_name="other")
    stack.ended(wanted.name)
    found = stack.jobs.list_custom_jobs(
        request={
            "parent": PARENT,
            "filter": 'labels.trainmaster_run_id="r-1" AND state="JOB_STATE_SUCCEEDED"',
        }
    )
    assert [job.name for job in found] == [wanted.name]


def test_a_list_has_only_the_fields_of_its_read_mask(stack: Stack) -> None:
    job = stack.submit(container("print=x"), labels={"a": "b"})
    paths = ["name", "labels", "job_spec.base_output_directory"]
    (shown,) = stack.jobs.list_custom_jobs(request={"parent": PARENT, "read_mask": {"paths": paths}})
    assert (shown.name, dict(shown.labels)) == (job.name, {"a": "b"})
    assert (shown.display_name, shown.create_time, list(shown.job_spec.worker_pool_specs)) == ("", None, [])


@pytest.mark.parametrize(
    "request_",
    [
        {"readMask": "nonsense"},
        {"filter": "nonsense="},
        {"pageSize": "-1"},
        {"pageSize": "many"},
        {"pageToken": "x"},
    ],
)
def test_an_invalid_list_call_is_refused(idle: Stack, request_: dict[str, str]) -> None:
    answer = httpx.get(f"{idle.url}/v1/{PARENT}/customJobs", params=request_, timeout=60)
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")


def test_a_page_token_belongs_to_its_filter(stack: Stack) -> None:
    for _ in range(2):
        stack.submit(container("print=x"))
    page = next(stack.jobs.list_custom_jobs(request={"parent": PARENT, "page_size": 1}).pages)
    with pytest.raises(exceptions.BadRequest, match="page_token"):
        stack.jobs.list_custom_jobs(
            request={"parent": PARENT, "page_token": page.next_page_token, "filter": "labels.a:*"}
        )


def test_a_finished_job_can_be_deleted_by_an_operation_that_is_done(stack: Stack) -> None:
    job = stack.submit(container("print=x"))
    stack.ended(job.name)
    operation = stack.jobs.delete_custom_job(name=job.name)
    operation.result(timeout=60)
    with pytest.raises(exceptions.NotFound):
        stack.jobs.get_custom_job(name=job.name)
    assert operation.operation.done


def test_a_running_job_cannot_be_deleted_and_a_finished_one_not_cancelled(stack: Stack) -> None:
    job = stack.submit(container("wait=b/go"))
    with pytest.raises(exceptions.BadRequest, match="can be deleted"):
        stack.jobs.delete_custom_job(name=job.name)
    (stack.buckets / "b").mkdir()
    (stack.buckets / "b" / "go").touch()
    stack.ended(job.name)
    with pytest.raises(exceptions.BadRequest, match="JOB_STATE_SUCCEEDED and cannot be cancelled"):
        stack.jobs.cancel_custom_job(name=job.name)


def test_a_job_larger_than_the_machine_is_a_quota_refusal(start: Callable[..., Any]) -> None:
    with start(capacity=2) as stack, pytest.raises(exceptions.TooManyRequests, match="exceed quota limits"):
        stack.submit(container("print=x"), container("print=x", replicas=2))
