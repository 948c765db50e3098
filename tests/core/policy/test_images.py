"""The images that the policy knows for well-formed ones, and the name of each."""

import re
from dataclasses import replace

import pytest

from tests.core.roles import EXECUTOR, ONE, OTHER, PACKAGE, cluster, request, told
from tests.core.shipped import NAMES, assert_valid, policy_document, schema
from trainmaster.orchestrator.core.policy.policy import policy_from, repository
from trainmaster.orchestrator.core.requests.checks.policy import policy_faults
from trainmaster.orchestrator.core.requests.draft import Draft

POLICY = policy_from(policy_document(), NAMES)
DIGEST = f"@sha256:{'0f' * 32}"


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
def test_a_valid_image_reference_passes_the_schema_and_has_its_repository(image: str, name: str) -> None:
    assert re.search(schema("training_request.v1")["$defs"]["image"]["pattern"], image)
    assert repository(image) == name


@pytest.mark.parametrize(
    ("written", "meant"), [(True, ("**",)), (False, ()), (["a/${project}/**"], ("a/my-project/**",))]
)
def test_digests_are_required_of_all_images_of_none_or_of_some(written: object, meant: object) -> None:
    document = {**policy_document(), "require_digest": written}
    assert_valid(document, "policy.v1")
    assert policy_from(document, NAMES).require_digest == meant
