"""Whose fault a refusal of the service is: over the real client, from the answers that users quoted."""

import re
from collections.abc import Mapping
from dataclasses import replace

import httpx
import pytest
from google.api_core.exceptions import from_grpc_status
from google.rpc.error_details_pb2 import ErrorInfo
from grpc import StatusCode

from tests.contract.proxy import Proxy, ProxyFault
from tests.contract.submissions import CREATE, submission
from tests.contract.world import PROJECT, REGION
from tests.narrowing import instance_of
from trainmaster.orchestrator.adapters.refusals import Called, submission_error
from trainmaster.orchestrator.adapters.vertex import VertexJobs
from trainmaster.orchestrator.core.errors import ActAsDenied, DeploymentRefused, SubmissionRefused
from trainmaster.orchestrator.core.job_names import JobKind
from trainstack.injections.answers import ANSWERS, NUMBER

PLACE = f"projects/{PROJECT}/locations/{REGION}"
ALL = f"deployment_{REGION}_customJobs"
AGENT = f"service-{NUMBER}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
ACCOUNT = "vision@my-project.iam.gserviceaccount.com"
CALLED = Called(project=PROJECT, region=REGION, kind=JobKind.CUSTOM)
REPAIRS = {
    "service_disabled": (ALL, f"gcloud services enable aiplatform.googleapis.com --project={PROJECT}"),
    "consumer_invalid": (ALL, f"gcloud projects describe {PROJECT}"),
    "vpc_service_controls": (ALL, 'vpcServiceControlsUniqueId="eYhDkfYCu-dOCjuj8X4Am9"'),
    "organization_policy": (ALL, "gcloud org-policies describe gcp.resourceLocations --effective"),
    "image_denied": (
        f"deployment_{REGION}_trainmaster",
        (
            "gcloud artifacts repositories add-iam-policy-binding trainmaster "
            f"--location={REGION} --project={PROJECT} --member=serviceAccount:{AGENT} --role=roles/artifactregistry.reader"
        ),
    ),
}


def test_every_answer_of_the_stack_is_tried() -> None:
    assert set(REPAIRS) == set(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_refused_deployment_is_an_error_with_its_repair(
    vertex: VertexJobs, jobs_url: str, name: str
) -> None:
    asked = submission()
    injection = {
        "name": name, "at": "vertex.customJobs.create", "kind": "error_before", "answer": name, "match": asked.run_id,
    }  # fmt: skip
    httpx.post(f"{jobs_url}/emulator/v1/injections", json=injection, timeout=60).raise_for_status()
    with pytest.raises(DeploymentRefused) as refused:
        vertex.submit(asked)
    lacks, repair = REPAIRS[name]
    assert refused.value.lacks == lacks
    assert repair in refused.value.reason


def denied(permission: str, resource: str) -> ProxyFault:
    """As Vertex AI answers: https://github.com/GoogleCloudPlatform/t5x-on-vertex-ai/issues/5"""
    return ProxyFault(
        on=CREATE,
        status=403,
        message=f"Permission '{permission}' denied on resource '//aiplatform.googleapis.com/{resource}' (or it may not exist).",
        details=(info("IAM_PERMISSION_DENIED", permission=permission, resource=resource),),
    )


def info(reason: str, **metadata: str) -> Mapping[str, object]:
    return {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "aiplatform.googleapis.com",
        "metadata": metadata,
    }


def disabled(**metadata: str) -> ProxyFault:
    return ProxyFault(on=CREATE, status=403, details=(info("SERVICE_DISABLED", **metadata),))


def without_info(name: str) -> ProxyFault:
    """The answer of that name without its ErrorInfo, so that its text decides."""
    return ProxyFault(on=CREATE, status=403, message=ANSWERS[name].message.replace("{project}", PROJECT))


CREATING = (
    f"gcloud projects add-iam-policy-binding {PROJECT} .*--role=projects/{PROJECT}/roles/trainmaster_jobs"
)


@pytest.mark.parametrize(
    ("fault", "lacks", "repair"),
    [
        (without_info("service_disabled"), ALL, ""),
        (without_info("consumer_invalid"), ALL, ""),
        (without_info("vpc_service_controls"), ALL, ""),
        (denied("aiplatform.customJobs.create", PLACE), ALL, CREATING),
        (denied("aiplatform.customJobs.create", f"projects/{NUMBER}/locations/{REGION}"), ALL, CREATING),
        (denied("aiplatform.customJobs.create", f"projects/{PROJECT}"), ALL, CREATING),
        (
            denied("aiplatform.contexts.create", PLACE),
            "deployment_aiplatform.contexts.create",
            "--add-permissions=aiplatform.contexts.create",
        ),
        (disabled(service="compute.googleapis.com"), "deployment_compute.googleapis.com", ""),
        (disabled(service="a,b/\n" + "c" * 300), "deployment_a_b__" + "c" * 145, ""),
        (disabled(), ALL, ""),
    ],
)
def test_what_the_deployment_lacks_stops_all_its_jobs_or_those_that_need_it(
    vertex: VertexJobs, jobs_proxy: Proxy, fault: ProxyFault, lacks: str, repair: str
) -> None:
    jobs_proxy.faults.append(fault)
    with pytest.raises(DeploymentRefused) as refused:
        vertex.submit(submission())
    assert refused.value.lacks == lacks
    assert re.search(repair, refused.value.reason)


def test_a_tuning_and_a_job_wait_for_rights_of_their_own() -> None:
    error = from_grpc_status(StatusCode.PERMISSION_DENIED, "no")
    assert isinstance(submission_error(error, CALLED), SubmissionRefused)
    details = ErrorInfo(
        reason="IAM_PERMISSION_DENIED",
        metadata={"permission": "aiplatform.hyperparameterTuningJobs.create", "resource": PLACE},
    )
    error = from_grpc_status(StatusCode.PERMISSION_DENIED, "no", details=[details], error_info=details)
    found = instance_of(DeploymentRefused, submission_error(error, CALLED._replace(kind=JobKind.TUNING)))
    assert found.lacks == f"deployment_{REGION}_hyperparameterTuningJobs"


DENIED = f"Permission 'iam.serviceAccounts.actAs' denied on service account {ACCOUNT} (or it may not exist)."


@pytest.mark.parametrize(
    ("status", "message", "details"),
    [
        (400, f"You do not have permission to act as service_account: {ACCOUNT}. (or it may not exist).", ()),
        (403, DENIED, ()),
        (
            403,
            DENIED,
            (info("IAM_PERMISSION_DENIED", permission="iam.serviceAccounts.actAs", resource=ACCOUNT),),
        ),
    ],
    ids=["400", "text", "ErrorInfo"],
)
def test_no_right_to_act_as_the_jobs_account_is_an_error_of_its_own(
    vertex: VertexJobs,
    jobs_proxy: Proxy,
    status: int,
    message: str,
    details: tuple[Mapping[str, object], ...],
) -> None:
    jobs_proxy.faults.append(ProxyFault(on=CREATE, status=status, message=message, details=details))
    with pytest.raises(ActAsDenied) as refused:
        vertex.submit(submission())
    assert (refused.value.account, refused.value.lacks) == (ACCOUNT, f"act_as_{ACCOUNT}")
    assert refused.value.reason.startswith(message.rstrip(" ."))
    assert jobs_proxy.passed == []


TENSORBOARD = f"{PLACE}/tensorboards/7"
ELSEWHERE = f"projects/another-project/locations/{REGION}/repositories/images"


@pytest.mark.parametrize(
    "fault",
    [
        denied("aiplatform.tensorboards.get", TENSORBOARD),
        denied("compute.networks.get", "projects/another-project/global/networks/n"),
        denied("aiplatform.contexts.get", f"projects/another-project/locations/{REGION}"),
        ProxyFault(
            on=CREATE,
            status=400,
            message=f"Vertex AI Service Agent {AGENT} does not have permission to access Artifact Registry repository {ELSEWHERE}.",
        ),
        ProxyFault(
            on=CREATE,
            status=400,
            message="Constraint constraints/gcp.restrictNonCmekServices violated for projects/p attempting to create a "
            "resource not protected by CMEK crypto key.",
        ),
        ProxyFault(on=CREATE, status=412, message="Operation denied by org policy: ['customConstraints/custom.noSpot']"),
        ProxyFault(on=CREATE, status=403, message="Access to the bucket gs://private was refused."),
    ],
    ids=["tensorboard", "network", "project", "repository", "key", "custom constraint", "bucket"],
)  # fmt: skip
def test_a_refused_resource_is_the_requests_fault(
    vertex: VertexJobs, jobs_proxy: Proxy, fault: ProxyFault
) -> None:
    jobs_proxy.faults.append(fault)
    with pytest.raises(SubmissionRefused) as refused:
        vertex.submit(submission())
    assert refused.value.reason.startswith(fault.message.rstrip(" ."))


def test_a_foreign_repository_is_refused_with_the_grant_to_give(
    vertex: VertexJobs, jobs_proxy: Proxy
) -> None:
    message = f"Vertex AI Service Agent {AGENT} does not have permission to access Artifact Registry repository {ELSEWHERE}."
    jobs_proxy.faults.append(ProxyFault(on=CREATE, status=400, message=message))
    with pytest.raises(SubmissionRefused, match=r"add-iam-policy-binding images .*--project=another-project"):
        vertex.submit(submission())


def test_a_deployment_that_may_not_list_jobs_is_refused_too(vertex: VertexJobs, jobs_proxy: Proxy) -> None:
    fault = replace(denied("aiplatform.customJobs.list", PLACE), on="GET ")
    jobs_proxy.faults.append(fault)
    with pytest.raises(DeploymentRefused) as refused:
        vertex.of_run("run-1", JobKind.CUSTOM, [REGION])
    assert refused.value.lacks == ALL
