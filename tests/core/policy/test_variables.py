"""Environment variables that a request may set, and those that the policy refuses."""

import pytest

from tests.core.roles import ONE, OTHER, accepted, cluster, request, told
from tests.core.shipped import NAMES, policy_document
from trainmaster.orchestrator.core.policy.policy import policy_from

REFUSED = """
    https_proxy HTTPS_PROXY Https_Proxy no_proxy ALL_PROXY CURL_CA_BUNDLE REQUESTS_CA_BUNDLE SSL_CERT_FILE
    SSL_CERT_DIR GCE_METADATA_HOST GCE_METADATA_IP GOOGLE_APPLICATION_CREDENTIALS STORAGE_EMULATOR_HOST
    CLOUDSDK_AUTH_ACCESS_TOKEN_FILE LD_AUDIT LD_LIBRARY_PATH LD_PRELOAD PATH PYTHONHOME PYTHONSTARTUP
    BASH_ENV NODE_OPTIONS PIP_INDEX_URL PIP_EXTRA_INDEX_URL UV_INDEX UV_INDEX_URL UV_DEFAULT_INDEX
    TF_CONFIG CLUSTER_SPEC AIP_MODEL_DIR
"""  # Python's urllib reads Https_Proxy


@pytest.mark.parametrize("name", REFUSED.split())
def test_code_credentials_and_connections_of_a_program_are_not_for_requests_to_set(name: str) -> None:
    env = {"env": {name: "x"}}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1}
    container = {"imageUri": OTHER, "env": [{"name": name, "value": "x"}]}
    vertex = {"displayName": "m", "jobSpec": {"workerPoolSpecs": [{**pool, "containerSpec": container}]}}
    for written, path in (
        (request(**env), f"$.env.{name}"),
        (request(cluster=cluster(workers={**ONE, **env})), f"$.cluster.workers.env.{name}"),
        (vertex, "$.jobSpec.workerPoolSpecs[0].containerSpec.env[0].name"),
    ):
        (fault,) = told(written).values()
        assert fault.path == path
        assert "the policy does not allow this name: " in fault.problem


@pytest.mark.parametrize(
    "name",
    [
        "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONWARNINGS", "OMP_NUM_THREADS", "NCCL_DEBUG", "XLA_FLAGS",
        "HOME",
    ],
)  # fmt: skip
def test_variables_with_honest_uses_are_accepted(name: str) -> None:
    accepted(request(env={name: "x"}))


def test_a_name_of_the_list_is_allowed_once_it_is_removed_and_a_plain_name_needs_no_reason() -> None:
    document = {**policy_document(), "env": {"refused": ["MY_*", {"names": ["PATH"]}]}}
    env = policy_from(document, NAMES).env
    accepted(request(env={"LD_PRELOAD": "libtcmalloc.so"}), env=env)
    (fault,) = told(request(env={"MY_KEY": "x"}), env=env).values()
    assert str(fault) == (
        "$.env.MY_KEY: the policy does not allow this name; found 'MY_KEY'; "
        "allowed: any name but MY_*, and those of env.refused in the policy"
    )
