"""The high-level SDK, unmodified, over REST."""

from collections.abc import Iterator

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform

from .conftest import Stack, container


@pytest.fixture
def sdk(stack: Stack) -> Iterator[Stack]:
    # project= must be given: without it the SDK asks the Resource Manager on the internet.
    aiplatform.init(
        project="p1", location="us-central1", staging_bucket="gs://staging", credentials=AnonymousCredentials(),
        api_endpoint=stack.url, api_transport="rest",
    )  # fmt: skip
    yield stack
    aiplatform.initializer.global_pool.shutdown(wait=True)


def test_a_job_is_submitted_followed_listed_and_deleted(sdk: Stack) -> None:
    job = aiplatform.CustomJob(
        display_name="from-the-sdk", worker_pool_specs=[container("tell")], labels={"team": "vision"}
    )
    job.submit()
    sdk.ended(job.resource_name)
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    environ = sdk.told(job.resource_name)["environ"]
    assert environ["AIP_MODEL_DIR"].startswith("gs://staging/aiplatform-custom-job-")
    assert environ["AIP_MODEL_DIR"].endswith("/model/")
    found = aiplatform.CustomJob.list(filter="labels.team=vision", order_by="create_time desc")
    assert [each.resource_name for each in found] == [job.resource_name]
    assert aiplatform.CustomJob.get(job.resource_name).display_name == "from-the-sdk"
    job.delete()
    assert aiplatform.CustomJob.list(filter="labels.team=vision") == []


def test_a_job_is_cancelled(sdk: Stack) -> None:
    job = aiplatform.CustomJob(display_name="long", worker_pool_specs=[container("sleep=600")])
    job.submit()
    job.cancel()
    sdk.ended(job.resource_name)
    assert job.state.name == "JOB_STATE_CANCELLED"
    assert job.error is not None
    assert job.error.code == 1
