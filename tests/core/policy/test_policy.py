"""The shipped policy is a legal one, and its patterns mean what they say."""

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import AcceleratorType
from jsonschema import Draft202012Validator

from tests.core.admission_cases import document, faults, policy, sound
from tests.core.roles import EXECUTOR, MACHINE, ONE, OTHER, PACKAGE, accepted, cluster, request, told
from tests.core.shipped import NAMES, policy_document, schema
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.policy.image import repository
from trainmaster.orchestrator.core.policy.policy import glob_matches, policy_from
from trainmaster.orchestrator.core.requests.checks.policy import policy_faults
from trainmaster.orchestrator.core.requests.draft import Draft

POLICY = policy_from(policy_document(), NAMES)
DIGEST = f"@sha256:{'0f' * 32}"


def test_the_shipped_policy_is_as_its_schema_says() -> None:
    Draft202012Validator(schema("policy.v1")).validate(policy_document())


def test_the_shipped_policy_names_only_accelerators_that_the_service_has() -> None:
    named = {name for row in POLICY.machines for name in row.accelerators or {}}
    assert named <= set(AcceleratorType.__members__)


def test_no_machine_type_stands_in_two_rows() -> None:
    every = [name for row in POLICY.machines for name in row.types]
    assert len(every) == len(set(every))


def test_an_unknown_name_in_a_pattern_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"\$\{tenant\}.*allowed: inbox_bucket, models_bucket, project, region"
    ):
        policy_from({**policy_document(), "images": ["${tenant}/**"]}, NAMES)


@pytest.mark.parametrize(
    ("pattern", "text", "meant"),
    [
        ("*-docker.pkg.dev/**", "us-docker.pkg.dev/my-project/r/i", True),
        ("*-docker.pkg.dev/**", "evil.com/x-docker.pkg.dev/p", False),
        ("gcr.io/*", "gcr.io/a/b", False),
        ("gcr.io/*", "gcrxio/a", False),
        ("a", "a\n", False),
        ("AIP_*", "AIP_", True),
    ],
)
def test_patterns_match_whole_texts(pattern: str, text: str, meant: bool) -> None:
    assert glob_matches(pattern, text) is meant


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("h/p/i:tag", "h/p/i"),
        (f"h/p/i{DIGEST}", "h/p/i"),
        (f"h/p/i:tag{DIGEST}", "h/p/i"),
        ("localhost:5000/i", "localhost:5000/i"),
        ("i", "i"),
        ("gcr.io/my-project/x@evil.example/y", ""),
        ("evil.example:80-docker.pkg.dev/my-project/x", ""),
        ("us-docker.pkg.dev/../my-project/x", ""),
        ("a..-docker.pkg.dev/my-project/x", ""),
        ("evil.example_-docker.pkg.dev/my-project/x", ""),
        ("gcr.io/my-project/x@sha256:0", ""),
        ("gcr.io/my-project/x\n", ""),
        ("gcr.io//x", ""),
        ("gcr.io/my-project/x:a:b", ""),
        ("user:password@gcr.io/my-project/x", ""),
        ("https://gcr.io/my-project/x", ""),
    ],
)
def test_the_repository_of_an_image_has_neither_tag_nor_digest(image: str, name: str) -> None:
    assert repository(image) == name


KEYS = "projects/my-project/locations/us-central1/keyRings"


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"image": "evil.example/x"}, "$.image", "*-docker.pkg.dev/my-project/**"),
        (
            {"cluster": cluster(workers={**ONE, "image": "evil.example/x"})},
            "$.cluster.workers.image",
            "*-docker.pkg.dev/my-project/**",
        ),
        (
            {"cluster": cluster(evaluators={**ONE, "image": "us-docker.pkg.dev/../evil/x"})},
            "$.cluster.evaluators.image",
            "not in the expected format",
        ),
        (
            {"image": None, "python_package": {**PACKAGE, "executor_image": OTHER}},
            "$.python_package.executor_image",
            "us-docker.pkg.dev/vertex-ai/training/*",
        ),
        (
            {"image": None, "python_package": {**PACKAGE, "uris": ["gs://my-project-data/a", "gs://else/b"]}},
            "$.python_package.uris[1]",
            "allowed: gs://my-project-data",
        ),
        (
            {"image": None, "python_package": {**PACKAGE, "uris": ["gs://my-project-data/../else/b"]}},
            "$.python_package.uris[0]",
            "does not allow",
        ),
        (
            {"image": None, "python_package": {**PACKAGE, "uris": ["gs://my-project-data-of-others/b"]}},
            "$.python_package.uris[0]",
            "does not allow",
        ),
        (
            {"cluster": cluster(workers={**ONE, "python_package": {**PACKAGE, "uris": ["gs://models/m/a"]}})},
            "$.cluster.workers.python_package.uris[0]",
            "package_prefixes",
        ),
        (
            {"cluster": cluster(parameter_servers={**ONE, "env": {"TF_CONFIG": "{}"}}, workers=ONE)},
            "$.cluster.parameter_servers.env.TF_CONFIG",
            "this service sets it",
        ),
        (
            {"cluster": {"chief": {**MACHINE, "env": {"TRAINMASTER_REPLICA_ENVIRONMENT": "x"}}}},
            "$.cluster.chief.env.TRAINMASTER_REPLICA_ENVIRONMENT",
            "this service sets it",
        ),
        (
            {"cluster": cluster(evaluators={**MACHINE, "machine": "n1-standard-5", "count": 1})},
            "$.cluster.evaluators.machine",
            "did you mean 'n1-standard-",
        ),
        (
            {"cluster": cluster(workers={**ONE, "accelerator": {"type": "NVIDIA_L4", "count": 1}})},
            "$.cluster.workers.accelerator.type",
            "n1-standard-4 does not support it",
        ),
        (
            {"cluster": cluster(workers={**ONE, "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 3}})},
            "$.cluster.workers.accelerator.count",
            "allowed: 1, 2, 4",
        ),
        (
            {"cluster": cluster(workers={**ONE, "tpu_topology": "2x2"})},
            "$.cluster.workers.tpu_topology",
            "remove it",
        ),
        (
            {"cluster": {"chief": {"machine": "ct5lp-hightpu-4t"}}},
            "$.cluster.chief.tpu_topology",
            "2x2, 2x4, 4x4",
        ),
        (
            {"cluster": {"chief": {"machine": "ct5lp-hightpu-8t", "tpu_topology": "2x2"}}},
            "$.cluster.chief.tpu_topology",
            "allowed: 2x4",
        ),
        (
            {
                "cluster": {
                    "chief": {
                        "machine": "ct5lp-hightpu-8t",
                        "tpu_topology": "2x4",
                        "accelerator": {"type": "TPU_V5_LITEPOD", "count": 8},
                    }
                }
            },
            "$.cluster.chief.accelerator.type",
            "tpu_topology already sets the number of chips",
        ),
        ({"cluster": {"chief": {"machine": "cloud-tpu"}}}, "$.cluster.chief.accelerator", "TPU_V2 (8, 32"),
        (
            {"cluster": cluster(workers={**ONE, "count": 20}, evaluators={**ONE, "count": 12})},
            "$.cluster.workers.count",
            "the cluster has 33; remove 1",
        ),
        ({"web_access": True}, "$.web_access", "allowed: false"),
        ({"dashboard_access": True}, "$.dashboard_access", "allowed: false"),
        (
            {"encryption_key": KEYS.replace("my-project", "other") + "/r/cryptoKeys/k"},
            "$.encryption_key",
            KEYS,
        ),
        ({"persistent_resource": "theirs"}, "$.persistent_resource", "allowed: none"),
        (
            {
                "network": "projects/1/global/networks/n",
                "cluster": {
                    "chief": {
                        **MACHINE,
                        "nfs_mounts": [{"server": "8.8.8.8", "path": "/a", "mount_point": "a"}],
                    }
                },
            },
            "$.cluster.chief.nfs_mounts[0].server",
            "an IP address in 10.0.0.0/8",
        ),
        (
            {
                "network": "projects/1/global/networks/n",
                "cluster": {
                    "chief": {
                        **MACHINE,
                        "nfs_mounts": [{"server": "nfs.example", "path": "/a", "mount_point": "a"}],
                    }
                },
            },
            "$.cluster.chief.nfs_mounts[0].server",
            "an IP address in 10.0.0.0/8",
        ),
    ],
)
def test_what_the_policy_does_not_give_is_refused_in_every_role(
    changes: Mapping[str, Any], path: str, words: str
) -> None:
    faults = told(request(**changes))
    assert list(faults) == [path]
    assert words in str(faults[path])


@pytest.mark.parametrize(
    "name",
    [
        "https_proxy",
        "HTTPS_PROXY",
        "Https_Proxy",  # Python's urllib reads it
        "no_proxy",
        "ALL_PROXY",
        "CURL_CA_BUNDLE",
        "REQUESTS_CA_BUNDLE",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "GCE_METADATA_HOST",
        "GCE_METADATA_IP",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
        "STORAGE_EMULATOR_HOST",
        "LD_AUDIT",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "PATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "BASH_ENV",
        "NODE_OPTIONS",
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "UV_INDEX",
        "UV_INDEX_URL",
        "UV_DEFAULT_INDEX",
        "TF_CONFIG",
        "CLUSTER_SPEC",
        "AIP_MODEL_DIR",
    ],
)
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
        "PYTHONPATH",
        "PYTHONUNBUFFERED",
        "PYTHONWARNINGS",
        "OMP_NUM_THREADS",
        "NCCL_DEBUG",
        "XLA_FLAGS",
        "HOME",
    ],
)
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


FOREIGN: Mapping[str, Any] = {
    "network": "projects/666/global/networks/n",
    "tensorboard": "projects/evil/locations/us-central1/tensorboards/1",
    "experiment": "projects/evil/locations/us-central1/metadataStores/default/contexts/e",
    "encryption_key": "projects/evil/locations/us-central1/keyRings/r/cryptoKeys/k",
    "service_account": "trainer@evil.iam.gserviceaccount.com",
    "persistent_resource": "reserved-by-another-team",
}


@pytest.mark.parametrize("key", FOREIGN)
def test_what_belongs_to_another_project_is_refused_in_requests_and_fallbacks(key: str) -> None:
    shipped = {"networks": POLICY.networks}
    account = {"service_account": "trainer@my-project.iam.gserviceaccount.com"}
    whole = request(**{**account, key: FOREIGN[key]})
    assert "does not allow" in told(whole, **shipped)[f"$.{key}"].problem


def test_a_run_of_another_projects_experiment_is_refused() -> None:
    own = "projects/my-project/locations/us-central1/metadataStores/default/contexts"
    written = request(experiment=f"{own}/e", experiment_run=f"{FOREIGN['experiment']}-1")
    assert list(told(written)) == ["$.experiment_run"]


def test_a_resource_that_names_the_own_project_by_its_number_gets_the_repair() -> None:
    account = "trainer@my-project.iam.gserviceaccount.com"
    board = "projects/123456/locations/us-central1/tensorboards/1"
    fault = told(request(tensorboard=board, service_account=account))["$.tensorboard"]
    assert fault.repair == "name the project by its id, not by its number"


IMAGES = ("gcr.io/my-project/x@evil.example/y", "evil.example:80-docker.pkg.dev/my-project/x", "a..b/x")


@pytest.mark.parametrize("image", IMAGES)
def test_a_malformed_image_is_refused_at_its_place_in_every_role_fallback_and_dialect(image: str) -> None:
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1}
    vertex = {"workerPoolSpecs": [{**pool, "containerSpec": {"imageUri": image}}]}
    master = {"scaleTier": "CUSTOM", "masterType": "n1-standard-4", "masterConfig": {"imageUri": image}}
    for written, path in (
        (request(image=image), "$.image"),
        (request(cluster=cluster(workers={**ONE, "image": image})), "$.cluster.workers.image"),
        (
            request(image=None, python_package={**PACKAGE, "executor_image": image}),
            "$.python_package.executor_image",
        ),
        ({"displayName": "m", "jobSpec": vertex}, "$.jobSpec.workerPoolSpecs[0].containerSpec.imageUri"),
        (
            {"jobId": "m", "trainingInput": {**master, "region": "us-central1"}},
            "$.trainingInput.masterConfig.imageUri",
        ),
    ):
        assert "not in the expected format" in told(written)[path].problem
    # Without the schema, the policy alone refuses it, whatever its patterns.
    draft = Draft(document=request(image=image), policy=replace(POLICY, images=("**",)), region="us-central1")
    assert [fault.path for fault in policy_faults(draft)] == ["$.image"]


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("ubuntu", "ubuntu"),
        ("localhost:5000/a/b", "localhost:5000/a/b"),
        ("gcr.io/my-project/a_b__c--d.e:Tag_1.2-3", "gcr.io/my-project/a_b__c--d.e"),
        ("us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest", EXECUTOR.rpartition(":")[0]),
        (f"{OTHER}{DIGEST}", OTHER.rpartition(":")[0]),
    ],
)
def test_a_reference_that_registries_accept_passes_the_schema_and_has_its_repository(
    image: str, name: str
) -> None:
    assert re.search(schema("training_request.v1")["$defs"]["image"]["pattern"], image)
    assert repository(image) == name


@pytest.mark.parametrize(
    "changes",
    [
        {"web_access": False, "dashboard_access": False},
        {"encryption_key": f"{KEYS}/r/cryptoKeys/k"},
        {"network": "projects/1/global/networks/n", "reserved_ip_ranges": ["any"]},
        {"image": None, "python_package": PACKAGE},
        {"cluster": cluster(workers={**ONE, "count": 19}, evaluators={**ONE, "count": 12})},
    ],
)
def test_what_the_policy_gives_is_accepted(changes: Mapping[str, Any]) -> None:
    accepted(request(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"web_access": True},
        {"image": None, "python_package": PACKAGE},
        {"network": "projects/1/global/networks/n", "reserved_ip_ranges": ["any"]},
    ],
)
def test_what_an_older_policy_file_does_not_mention_is_refused(changes: Mapping[str, Any]) -> None:
    known = ("executor_images", "package_prefixes", "reserved_ip_ranges", "web_access")
    older = policy_from({key: value for key, value in policy_document().items() if key not in known}, NAMES)
    policy = {key: getattr(older, key) for key in known}
    assert all("does not allow" in fault.problem for fault in told(request(**changes), **policy).values())


def test_an_older_policy_file_takes_the_images_of_containers_for_executors() -> None:
    package = {**PACKAGE, "executor_image": OTHER}
    accepted(request(image=None, python_package=package), executor_images=None)


def test_a_network_of_servers_that_is_none_is_no_policy() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.0/99"):
        policy_from({**policy_document(), "nfs_servers": ["10.0.0.0/99"]}, NAMES)


def test_the_shipped_policy_has_topologies_of_as_many_chips_as_whole_machines() -> None:
    """`ct5lp-hightpu-4t` has four chips: every arrangement of it is a multiple."""
    for row in POLICY.machines:
        for machine, topology in itertools.product(row.types, row.tpu_topologies):
            chips = int(machine.removesuffix("t").rpartition("-")[2])
            assert math.prod(map(int, topology.split("x"))) % chips == 0, (machine, topology)


@pytest.mark.parametrize(
    ("written", "meant"),
    [(True, ("**",)), (False, ()), (["a/${project}/**"], ("a/my-project/**",))],
)
def test_digests_are_required_of_all_images_of_none_or_of_some(written: object, meant: object) -> None:
    document = {**policy_document(), "require_digest": written}
    Draft202012Validator(schema("policy.v1")).validate(document)
    assert policy_from(document, NAMES).require_digest == meant


def test_the_policy_bounds_the_priority_that_requests_may_ask_for() -> None:
    bounded = policy({"max_priority": 70})
    assert "at most 70" in faults(document(priority=71), under=bounded)["$.priority"]
    sound(document(priority=70), under=bounded)
    sound(document(), under=bounded)
    sound(document(priority=100))


def test_a_request_without_a_label_that_the_policy_wants_is_refused() -> None:
    wants = policy({"required_labels": ["team"]})
    assert list(faults(document(labels={"tier": "a"}), under=wants)) == ["$.labels.team"]
    sound(document(labels={"team": "blue"}), under=wants)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"regions": ["*"]}, "$.regions[0]"),
        ({"regions": ["${region}", "europe-*"]}, "$.regions[1]"),
        ({"admission": {"max_priority": 49}}, "$.admission.max_priority"),
        ({"admission": {"required_labels": ["Team"]}}, "$.admission.required_labels[0]"),
    ],
)
def test_a_policy_that_says_what_cannot_hold_is_refused(change: Mapping[str, Any], path: str) -> None:
    assert [fault.path for fault in schema_faults(schema("policy.v1"), {**policy_document(), **change})] == [
        path
    ]
